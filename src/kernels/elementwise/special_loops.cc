// Error function, gamma functions, roots and powers.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/special_loops.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <cmath>

#include "kernels/elementwise/loop_tables.h"
#include "kernels/elementwise/span_loops.h"
#include "kernels/elementwise/special_functions.h"
#include "kernels/elementwise/vector_math.h"

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {

struct Erf {
  static constexpr bool kVector = true;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return erf(d, x);
  }
};

// float32 is computed in float64: one rounding.
struct Erfinv {
  template <class T>
  T operator()(T x) const {
    return static_cast<T>(erfinv(static_cast<double>(x)));
  }
};
struct Gamma {
  template <class T>
  T operator()(T x) const {
    return static_cast<T>(std::tgamma(static_cast<double>(x)));
  }
};
struct Gammaln {
  template <class T>
  T operator()(T x) const {
    return static_cast<T>(log_gamma(static_cast<double>(x)));
  }
};
template <class T>
struct Polygamma {
  explicit Polygamma(const double* scalars) : order(static_cast<int>(scalars[0])) {}
  T operator()(T x) const { return static_cast<T>(polygamma(order, static_cast<double>(x))); }
  int order;
};
struct Cbrt {
  template <class T>
  T operator()(T x) const {
    return static_cast<T>(std::cbrt(static_cast<double>(x)));
  }
};
struct Rcbrt {
  template <class T>
  T operator()(T x) const {
    return static_cast<T>(1.0 / std::cbrt(static_cast<double>(x)));
  }
};

struct Power {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      return integer_power(a, b);
    } else {
      return std::pow(a, b);
    }
  }
  // By squaring, wrapping around; negative exponents give 1 / a^-b rounded toward zero.
  template <class T>
  static T integer_power(T a, T b) {
    if (b < T(0)) return a == T(1) ? T(1) : a == T(-1) ? (b % 2 ? T(-1) : T(1)) : T(0);
    uint64_t base = static_cast<uint64_t>(a), result = 1;
    for (auto e = static_cast<uint64_t>(b); e; e >>= 1) {
      if (e & 1) result *= base;
      base *= base;
    }
    return static_cast<T>(result);
  }
};
struct PowerOfFloats {
  static constexpr bool kVector = true;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V a, V b) const {
    return power(d, a, b);
  }
};
struct Hypot {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_same_v<T, float>) {  // squares of float32 neither overflow nor lose digits in float64
      const double x = a, y = b;
      return std::isinf(a) || std::isinf(b) ? std::numeric_limits<float>::infinity()
                                            : static_cast<float>(std::sqrt(x * x + y * y));
    } else {
      return std::hypot(a, b);
    }
  }
};
struct Arctan2 {
  template <class T>
  T operator()(T a, T b) const {
    return std::atan2(a, b);
  }
};
struct Copysign {
  template <class T>
  T operator()(T a, T b) const {
    return std::copysign(a, b);
  }
};

void fill_special(SpanLoops* table) {
  add<Erf, 1>(table, Pointwise::kErf, 1.0, Floats());
  add<Erfinv, 1>(table, Pointwise::kErfinv, 15, Floats());
  add<Gamma, 1>(table, Pointwise::kGamma, 40, Floats());
  add<Gammaln, 1>(table, Pointwise::kGammaln, 25, Floats());
  add_typed<Polygamma, 1>(table, Pointwise::kPolygamma, 40, Floats());
  add<Cbrt, 1>(table, Pointwise::kCbrt, 8, Floats());
  add<Rcbrt, 1>(table, Pointwise::kRcbrt, 9, Floats());
  add<Power, 2>(table, Pointwise::kPower, 2, FloatsAndIntegers());
  set_loops<float, PowerOfFloats, 2>(table[static_cast<int>(Pointwise::kPower)]);
  add<Hypot, 2>(table, Pointwise::kHypot, 1, Floats());
  add<Arctan2, 2>(table, Pointwise::kArctan2, 15, Floats());
  add<Copysign, 2>(table, Pointwise::kCopysign, 0.3, Floats());
}

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hybridnet::kernels {
HWY_EXPORT(fill_special);
void fill_special(SpanLoops* table) { HWY_DYNAMIC_DISPATCH(fill_special)(table); }
}  // namespace hybridnet::kernels
#endif
