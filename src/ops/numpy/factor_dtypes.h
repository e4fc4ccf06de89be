// Factorizations support float32 and float64. Other dtypes are computed in float32; the result has their own dtype, or
// float32 for integers.
#pragma once

#include "ops/numpy/promote.h"

namespace hybridnet::ops {

inline DType factor_dtype(DType dtype) { return dtype == DType::kFloat64 ? dtype : DType::kFloat32; }
inline Value in_factor_dtype(const Value& v) { return cast(v, factor_dtype(dtype_of(v))); }
inline Value in_result_dtype(const Value& v, DType of_input) { return cast(v, floating(of_input)); }

inline void require_square(const Value& a, const char* name) {
  const Shape& s = spec_of(a).shape;
  const int n = s.ndim();
  if (n < 2 || s[n - 1] != s[n - 2])
    throw ShapeError({.input = name, .expected = "square matrices (..., n, n)", .given = "shape " + s.str()});
}

}  // namespace hybridnet::ops
