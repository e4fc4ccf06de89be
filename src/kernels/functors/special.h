// Error function, gamma functions, roots and powers. Functors for CPU loops
// (kernels/elementwise/span_loops.h), compiled once per SIMD target, hence the toggled guard, and for devices.
#if defined(HYBRIDNET_FUNCTORS_SPECIAL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HYBRIDNET_FUNCTORS_SPECIAL_H_
#undef HYBRIDNET_FUNCTORS_SPECIAL_H_
#else
#define HYBRIDNET_FUNCTORS_SPECIAL_H_
#endif

#include <hwy/highway.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/elementwise/vector_math.h"
#ifdef HYBRIDNET_ONE_LANE
#include "kernels/functors/special_functions.h"
namespace hybridnet::kernels {
using scalar::erfinv, scalar::log_gamma, scalar::polygamma;
}
#else
#include "kernels/elementwise/special_functions.h"
#endif

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
  static constexpr int kScalars = 1;
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

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
