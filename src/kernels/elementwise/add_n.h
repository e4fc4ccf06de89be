// Sums of several arrays of one size.
#pragma once

#include <cstdint>
#include <span>

#include "hybridnet/base.h"

namespace hybridnet::kernels {

// out = in[0] + in[1] + ..., added in this order in one pass over memory; float16 and bfloat16 are summed in float32.
// `out` may be in[0]. Splits over cores.
void add_n(DType dtype, std::span<const void* const> in, void* out, int64_t n);

}  // namespace hybridnet::kernels
