// out[i] = condition[i] ? x[i] : y[i].
#pragma once

#include <cstdint>

#include "hybridnet/base.h"

namespace hybridnet::kernels {

// condition: n elements of any dtype, nonzero (NaN too) is true. x, y, out: items of item_size bytes. Splits over
// cores.
void select(DType condition_dtype, const void* condition, int64_t item_size, const void* x, const void* y, void* out,
            int64_t n);

}  // namespace hybridnet::kernels
