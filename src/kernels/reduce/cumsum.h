// Cumulative sums along an axis.
#pragma once

#include <cstdint>

#include "hybridnet/base.h"

namespace hybridnet::kernels {

// in and out: (outer, length, inner). out[o, i, k] = sum of in[o, 0..i, k], or of in[o, i..length-1, k] if from_end.
// Floating sums run in float64, integer ones in int64. Splits over cores; the same bits for any number of threads.
void cumsum(DType dtype, const void* in, int64_t outer, int64_t length, int64_t inner, bool from_end, DType out_dtype,
            void* out);

}  // namespace hybridnet::kernels
