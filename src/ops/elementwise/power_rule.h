// Partial derivatives of lhs to the power of rhs, as products whose factors are finite where the derivative is.
#pragma once

#include "ops/emit.h"

namespace hybridnet::ops {

// rhs * lhs^(rhs - 1); zero for rhs = 0, where lhs^-1 may be infinite.
inline Value power_by_base(const OpRef& power, const Value& lhs, const Value& rhs) {
  static const OpRef kNotEqualScalar{"_not_equal_scalar"};
  return rhs * call(power, {lhs, rhs - call(kNotEqualScalar, {rhs}, {{"scalar", 0.0}})});
}

// lhs^rhs * log(lhs); zero for lhs = 0 and rhs >= 0, where the logarithm is infinite.
inline Value power_by_exponent(const Value& lhs, const Value& rhs, const Value& result) {
  static const OpRef kLog{"log"}, kEqualScalar{"_equal_scalar"}, kGreaterEqualScalar{"_greater_equal_scalar"};
  const Value stays_zero =
      call(kEqualScalar, {lhs}, {{"scalar", 0.0}}) * call(kGreaterEqualScalar, {rhs}, {{"scalar", 0.0}});
  return result * call(kLog, {lhs + stays_zero});
}

}  // namespace hybridnet::ops
