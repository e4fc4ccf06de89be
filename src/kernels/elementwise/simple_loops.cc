// Functions of one input (and gradients, whose first input is the output gradient) without transcendental mathematics.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/simple_loops.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include <limits>
#include <type_traits>

#include "kernels/elementwise/half_power.h"
#include "kernels/elementwise/loop_tables.h"
#include "kernels/elementwise/span_loops.h"

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {

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
  explicit Scale(const double* scalars) : factor(static_cast<T>(scalars[0])) {}
  HWY_INLINE T operator()(T a) const { return static_cast<T>(a * factor); }
  T factor;
};

// NaN stays. A zero that equals a bound becomes this bound, whatever its sign, like in the kernels that clip their
// results. Bounds outside the range of an integer type mean its limits.
template <class T>
struct Clip {
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
    return dy * (T(1) - y * y);
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

void fill_half_power(SpanLoops* loops) { add<HalfPower, 1>(loops, Pointwise{}, 0.3, Floats()); }

void fill_simple(SpanLoops* table) {
  add<Copy, 1>(table, Pointwise::kCopy, 0.1, AllTypes());
  add<Negative, 1>(table, Pointwise::kNegative, 0.1, FloatsAndIntegers());
  add<Abs, 1>(table, Pointwise::kAbs, 0.1, FloatsAndIntegers());
  add<Sign, 1>(table, Pointwise::kSign, 0.1, FloatsAndIntegers());
  add<Square, 1>(table, Pointwise::kSquare, 0.1, FloatsAndIntegers());
  add<Cube, 1>(table, Pointwise::kCube, 0.1, FloatsAndIntegers());
  add<Relu, 1>(table, Pointwise::kRelu, 0.1, FloatsAndIntegers());
  add<LogicalNot, 1>(table, Pointwise::kLogicalNot, 0.1, AllTypes());
  add<Reciprocal, 1>(table, Pointwise::kReciprocal, 0.2, FloatsAndIntegers());
  add<Floor, 1>(table, Pointwise::kFloor, 0.1, Floats());
  add<Ceil, 1>(table, Pointwise::kCeil, 0.1, Floats());
  add<Trunc, 1>(table, Pointwise::kTrunc, 0.1, Floats());
  add<Rint, 1>(table, Pointwise::kRint, 0.1, Floats());
  add<RoundEven, 1>(table, Pointwise::kRoundEven, 0.1, Floats());
  add<Round, 1>(table, Pointwise::kRound, 0.1, Floats());
  add<Sqrt, 1>(table, Pointwise::kSqrt, 0.4, Floats());
  add<Rsqrt, 1>(table, Pointwise::kRsqrt, 0.6, Floats());
  add_typed<Scale, 1>(table, Pointwise::kScale, 0.1, Floats());
  add_typed<Clip, 1>(table, Pointwise::kClip, 0.1, FloatsAndIntegers());
  add<ReluGrad, 2>(table, Pointwise::kReluGrad, 0.1, FloatsAndIntegers());
  add<SigmoidGrad, 2>(table, Pointwise::kSigmoidGrad, 0.1, Floats());
  add<TanhGrad, 2>(table, Pointwise::kTanhGrad, 0.1, Floats());
  add<SqrtGrad, 2>(table, Pointwise::kSqrtGrad, 0.2, Floats());
  add<SquareGrad, 2>(table, Pointwise::kSquareGrad, 0.1, Floats());
  add<DivGrad, 3>(table, Pointwise::kDivGrad, 0.2, Floats());
  // Rounding does not change integers.
  for (const Pointwise id :
       {Pointwise::kFloor, Pointwise::kCeil, Pointwise::kTrunc, Pointwise::kRint, Pointwise::kRound}) {
    for (const DType t : {DType::kInt8, DType::kUInt8, DType::kInt32, DType::kInt64, DType::kBool}) {
      table[static_cast<int>(id)].fn[0][static_cast<int>(t)] =
          table[static_cast<int>(Pointwise::kCopy)].fn[0][static_cast<int>(t)];
    }
  }
}

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hybridnet::kernels {
HWY_EXPORT(fill_simple);
HWY_EXPORT(fill_half_power);
void fill_simple(SpanLoops* table) { HWY_DYNAMIC_DISPATCH(fill_simple)(table); }

const SpanLoops& half_power_loops() {
  static const SpanLoops filled = [] {
    SpanLoops loops;
    HWY_DYNAMIC_DISPATCH(fill_half_power)(&loops);
    return loops;
  }();
  return filled;
}
}  // namespace hybridnet::kernels
#endif
