// Formulas of operators (ops/elementwise/formula.h) that devices compute, too: functors of float or double.
#pragma once

#include <cmath>

#include "kernels/functors/update_math.h"

namespace hybridnet::kernels {

// x * clip(x / 6 + 1 / 2, 0, 1), by pieces, so that -inf gives 0: the product would be -inf * 0, NaN.
struct HardSwish {
  static constexpr const char* kFormula = "HardSwish";
  static constexpr double kEnd = 3;  // 0 up to -3, x from 3
  template <typename T>
  T operator()(T x) const {
    return x <= T(-kEnd) ? T(0) : x >= T(kEnd) ? x : x * (x + T(kEnd)) / T(2 * kEnd);
  }
};

// x where it is finite, other numbers where it is not.
struct FiniteOrParams {
  static constexpr const char* kFormula = "FiniteOrParams";
  double nan, posinf, neginf;
  static void describe(ParamSchema<FiniteOrParams>& schema);
  template <typename T>
  T operator()(T x) const {
    if (std::isnan(x)) return T(nan);
    return std::isinf(x) ? T(x > 0 ? posinf : neginf) : x;
  }
};

}  // namespace hybridnet::kernels
