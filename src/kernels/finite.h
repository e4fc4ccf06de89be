// Are all numbers finite?
#pragma once

#include <cstdint>

#include "hybridnet/base.h"

namespace hybridnet::kernels {

// No element is infinite or NaN. Integers are finite. Splits over cores; stops early.
bool all_finite(DType dtype, const void* in, int64_t n);

}  // namespace hybridnet::kernels
