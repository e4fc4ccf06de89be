// Conversion between dtypes. Floating to integer truncates through int64: values outside of int64 saturate and NaN
// becomes 0; narrower integers then wrap around. To bool: every value except 0 is true.
#pragma once

#include <cstdint>

#include "hybridnet/base.h"

namespace hybridnet::kernels {

using ConvertFn = void (*)(const void* in, void* out, int64_t n);

ConvertFn convert_fn(DType from, DType to);                                // never null; equal dtypes copy
void convert(DType from, const void* in, DType to, void* out, int64_t n);  // on the calling thread
void convert_parallel(DType from, const void* in, DType to, void* out, int64_t n);

}  // namespace hybridnet::kernels
