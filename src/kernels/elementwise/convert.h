// Conversion between dtypes. Floating to integer truncates through int64: values outside of int64 saturate and NaN
// becomes 0; narrower integers then wrap around. To bool: every value except 0 is true.
#pragma once

#include <cstdint>

#include "hybridnet/base.h"

namespace hybridnet::kernels {

using ConvertFn = void (*)(const void* in, void* out, int64_t n);

ConvertFn convert_fn(DType from, DType to);  // never null; equal dtypes copy
inline void convert(DType from, const void* in, DType to, void* out, int64_t n) { convert_fn(from, to)(in, out, n); }
void convert_parallel(DType from, const void* in, DType to, void* out, int64_t n);

}  // namespace hybridnet::kernels
