// Functions of one number (and gradients, whose first input is the output gradient) without transcendental mathematics.
// Functors for CPU loops (kernels/elementwise/span_loops.h), compiled once per SIMD target, hence the toggled guard,
// and for devices.
#if defined(HYBRIDNET_FUNCTORS_SIMPLE_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HYBRIDNET_FUNCTORS_SIMPLE_H_
#undef HYBRIDNET_FUNCTORS_SIMPLE_H_
#else
#define HYBRIDNET_FUNCTORS_SIMPLE_H_
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/functors/contraction.h"

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

struct Copy {
  template <class T>
  HWY_INLINE T operator()(T a) const {
    return a;
  }
};
struct Negative {
  template <class T>
  HWY_INLINE T operator()(T a) const {
    if constexpr (std::is_integral_v<T>) return static_cast<T>(0u - static_cast<std::make_unsigned_t<T>>(a));
    return static_cast<T>(-a);
  }
};
struct Abs {
  template <class T>
  HWY_INLINE T operator()(T a) const {
    if constexpr (std::is_floating_point_v<T>)
      return a < T(0) ? -a : a + T(0);  // -0 becomes 0
    else if constexpr (std::is_unsigned_v<T>)
      return a;
    else
      return a < T(0) ? static_cast<T>(0u - static_cast<std::make_unsigned_t<T>>(a)) : a;
  }
};
struct Sign {
  template <class T>
  HWY_INLINE T operator()(T a) const {
    if constexpr (std::is_unsigned_v<T>)
      return a > T(0) ? T(1) : T(0);
    else
      return static_cast<T>((a > T(0) ? T(1) : T(0)) - (a < T(0) ? T(1) : T(0)));
  }
};
struct Square {
  template <class T>
  HWY_INLINE T operator()(T a) const {
    if constexpr (std::is_integral_v<T>) {
      const auto u = static_cast<uint64_t>(a);
      return static_cast<T>(u * u);
    }
    return static_cast<T>(a * a);
  }
};
struct Cube {
  template <class T>
  HWY_INLINE T operator()(T a) const {
    if constexpr (std::is_integral_v<T>) {
      const auto u = static_cast<uint64_t>(a);
      return static_cast<T>(u * u * u);
    }
    return static_cast<T>(a * a * a);
  }
};
struct Relu {
  template <class T>
  HWY_INLINE T operator()(T a) const {
    return a <= T(0) ? T(0) : a;
  }  // NaN stays; -0 becomes 0
};
struct LogicalNot {
  template <class T>
  HWY_INLINE T operator()(T a) const {
    return a != T(0) ? T(0) : T(1);
  }
};
struct Reciprocal {
  template <class T>
  HWY_INLINE T operator()(T a) const {
    if constexpr (std::is_integral_v<T>) return a == T(0) ? T(0) : static_cast<T>(T(1) / a);
    return T(1) / a;
  }
};

// The rounded number with the sign of the original number: zeros keep their signs. Instruction sets below SSE4.1 have
// no rounding instruction, and its emulation returns +0.
template <class V>
HWY_INLINE V with_sign(V rounded, V a) {
#if HWY_TARGET == HWY_SSSE3 || (defined(HWY_SSE2) && HWY_TARGET == HWY_SSE2)
  return hn::CopySign(rounded, a);
#else
  return rounded;
#endif
}
// Rounding; integers stay as they are.
struct Floor {
  static constexpr bool kVector = true;
  template <class D, class V>
  HWY_INLINE V operator()(D, V a) const {
    return with_sign(hn::Floor(a), a);
  }
};
struct Ceil {
  static constexpr bool kVector = true;
  template <class D, class V>
  HWY_INLINE V operator()(D, V a) const {
    return with_sign(hn::Ceil(a), a);
  }
};
struct Trunc {
  static constexpr bool kVector = true;
  template <class D, class V>
  HWY_INLINE V operator()(D, V a) const {
    return with_sign(hn::Trunc(a), a);
  }
};
// To nearest; halves go to the even neighbor, like NumPy's around.
struct RoundEven {
  static constexpr bool kVector = true;
  template <class D, class V>
  HWY_INLINE V operator()(D, V a) const {
    return with_sign(hn::Round(a), a);
  }
};
// To nearest; halves go down, like MXNet's rint.
struct Rint {
  static constexpr bool kVector = true;
  template <class D, class V>
  HWY_INLINE V operator()(D, V a) const {
    const V low = hn::Floor(a), high = hn::Ceil(a);
    return with_sign(hn::IfThenElse(hn::Le(hn::Sub(a, low), hn::Sub(high, a)), low, high), a);
  }
};
// To nearest; halves go away from zero.
struct Round {
  static constexpr bool kVector = true;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V a) const {
    const V whole = hn::Trunc(a);
    const V rest = hn::Abs(hn::Sub(a, whole));
    const V one = hn::CopySign(hn::Set(d, 1), a);
    return with_sign(hn::IfThenElse(hn::Ge(rest, hn::Set(d, hn::TFromD<D>(0.5))), hn::Add(whole, one), whole), a);
  }
};
struct Sqrt {
  static constexpr bool kVector = true;
  template <class D, class V>
  HWY_INLINE V operator()(D, V a) const {
    return hn::Sqrt(a);
  }
};
// The result of C's pow(a, 0.5): the root, but 0 for -0 and inf for -inf.
struct HalfPower {
  static constexpr bool kVector = true;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V a) const {
    const V least = hn::Set(d, -std::numeric_limits<hn::TFromD<D>>::infinity());
    return hn::IfThenElse(hn::Eq(a, least), hn::Neg(least), hn::Sqrt(hn::Add(a, hn::Zero(d))));
  }
};
struct Rsqrt {
  static constexpr bool kVector = true;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V a) const {
    return hn::Div(hn::Set(d, 1), hn::Sqrt(a));
  }
};

// scalars[0] * a, exact in the element type (degrees, radians).
template <class T>
struct Scale {
  static constexpr int kScalars = 1;
  explicit Scale(const double* scalars) : factor(static_cast<T>(scalars[0])) {}
  HWY_INLINE T operator()(T a) const { return static_cast<T>(a * factor); }
  T factor;
};

// NaN stays. A zero that equals a bound becomes this bound, whatever its sign, like in the kernels that clip their
// results. Bounds outside the range of an integer type mean its limits.
template <class T>
struct Clip {
  static constexpr int kScalars = 2;
  explicit Clip(const double* scalars) : low(bound(scalars[0])), high(bound(scalars[1])) {}
  static T bound(double x) {
    if constexpr (std::is_integral_v<T>) {
      if (!(x > static_cast<double>(std::numeric_limits<T>::min()))) return std::numeric_limits<T>::min();
      if (x >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
    }
    return static_cast<T>(x);
  }
  HWY_INLINE T operator()(T a) const {
    const T x = a <= low ? low : a;
    return x >= high ? high : x;
  }
  T low, high;
};

struct ReluGrad {
  template <class T>
  HWY_INLINE T operator()(T dy, T x) const {
    return x > T(0) ? dy : (x != x ? x : T(0));  // NaN propagates as in forward: a broken input must not look flat
  }
};
struct SigmoidGrad {  // y: the sigmoid
  template <class T>
  HWY_INLINE T operator()(T dy, T y) const {
    return dy * (y * (T(1) - y));
  }
};
struct TanhGrad {  // y: the tanh
  template <class T>
  HWY_INLINE T operator()(T dy, T y) const {
    return dy * minus_product(T(1), y, y);
  }
};
struct SqrtGrad {  // y: the root
  template <class T>
  HWY_INLINE T operator()(T dy, T y) const {
    return dy * (T(0.5) / y);
  }
};
struct SquareGrad {
  template <class T>
  HWY_INLINE T operator()(T dy, T x) const {
    return dy * (x + x);
  }
};
// The gradient of a / b with respect to b: (dy, y, b) with y = a / b.
struct DivGrad {
  template <class T>
  HWY_INLINE T operator()(T dy, T y, T b) const {
    return -(dy * y) / b;
  }
};

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
