// Vector mathematics for float32 and float64 on top of Highway's contrib/math: exact limits, NaN and infinities, and
// missing functions. Errors measured against long double are bounded in tests/cpp/kernels/pointwise_test.cc. Included
// once per SIMD target, hence the toggled guard.
#if defined(HYBRIDNET_VECTOR_MATH_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HYBRIDNET_VECTOR_MATH_H_
#undef HYBRIDNET_VECTOR_MATH_H_
#else
#define HYBRIDNET_VECTOR_MATH_H_
#endif

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <cmath>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
HWY_INLINE hn::Vec<D> constant(D d, double value) {
  return hn::Set(d, static_cast<hn::TFromD<D>>(value));
}
template <class D>
constexpr bool is_float32() {
  return sizeof(hn::TFromD<D>) == 4;
}

// Clips x to [low, high]; NaN stays: Min and Max return their second operand if one is NaN.
template <class D, class V>
HWY_INLINE V limit(D d, V x, double low, double high) {
  return hn::Min(constant(d, high), hn::Max(constant(d, low), x));
}

template <class D, class V>
HWY_INLINE V exp(D d, V x) {
  // Outside these limits the result is 0 or infinity; Highway's exponent arithmetic would wrap around.
  const V y = hn::Exp(d, is_float32<D>() ? limit(d, x, -104.0, 89.0) : limit(d, x, -746.0, 710.0));
  return hn::IfThenElse(hn::Eq(x, x), y, x);
}

template <class D, class V>
HWY_INLINE V expm1(D d, V x) {
  const V y = hn::Expm1(d, is_float32<D>() ? limit(d, x, -104.0, 89.0) : limit(d, x, -746.0, 710.0));
  return hn::IfThenElse(hn::Eq(x, hn::Zero(d)), x, y);  // keeps -0
}

// The limits of log functions where Highway's are undefined: -inf at `pole`, NaN below it, inf at inf.
template <class D, class V>
HWY_INLINE V log_limits(D d, V x, V y, double pole) {
  const V at = constant(d, pole);
  const V infinity = constant(d, std::numeric_limits<double>::infinity());
  const V below =
      hn::IfThenElse(hn::Eq(x, at), hn::Neg(infinity), constant(d, std::numeric_limits<double>::quiet_NaN()));
  const V inside = hn::IfThenElse(hn::Eq(x, infinity), infinity, y);
  return hn::IfThenElse(hn::Gt(x, at), inside, below);  // NaN compares false
}

template <class D, class V>
HWY_INLINE V log(D d, V x) {
  return log_limits(d, x, hn::Log(d, x), 0.0);
}
template <class D, class V>
HWY_INLINE V log2(D d, V x) {
  return log_limits(d, x, hn::Log2(d, x), 0.0);
}
template <class D, class V>
HWY_INLINE V log10(D d, V x) {
  return log_limits(d, x, hn::Log10(d, x), 0.0);
}
template <class D, class V>
HWY_INLINE V log1p(D d, V x) {
  const V y = log_limits(d, x, hn::Log1p(d, x), -1.0);
  return hn::IfThenElse(hn::Eq(x, hn::Zero(d)), x, y);
}

// c[0] + c[1] x + c[2] x^2 + ...
template <class D, class V, size_t N>
HWY_INLINE V polynomial(D d, V x, const double (&c)[N]) {
  V sum = constant(d, c[N - 1]);
  for (size_t i = N - 1; i > 0; --i) sum = hn::MulAdd(sum, x, constant(d, c[i - 1]));
  return sum;
}

// e^-x in float32, to be added to 1: infinite if e^-x exceeds 2.4e38, 1.6e-38 if it is less.
// x = -(n log 2 + r), e^r by a polynomial with a relative error of 3.1e-9; log 2 in two parts (Cody and Waite). Adding
// 1.5 2^23 + 127 rounds n to an integer, and leaves the exponent of 2^n in the lowest bits.
template <class D, class V>
HWY_INLINE V exp_of_negative(D d, V x) {
  constexpr double kRounds = 12582912.0 + 127.0;
  constexpr double kPolynomial[] = {0.49999993412408755, 0.16666520106543095, 4.166839422537352e-2,
                                    8.368780559059416e-3, 1.3814466828408912e-3};
  const V y = limit(d, x, -89.0, 87.0), rounds = constant(d, kRounds);
  const V shifted = hn::NegMulAdd(y, constant(d, 1.4426950408889634), rounds), n = hn::Sub(shifted, rounds);
  const V first = hn::NegMulAdd(n, constant(d, 0.693145751953125), hn::Neg(y));
  const V r = hn::NegMulAdd(n, constant(d, 1.428606765330187e-6), first);
  const V power = hn::Add(constant(d, 1.0), hn::MulAdd(hn::Mul(r, r), polynomial(d, r, kPolynomial), r));
  const hn::RebindToSigned<D> integers;
  return hn::Mul(power, hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(integers, shifted))));
}

// tanh(|x|) = (1 - e^-2|x|) / (1 + e^-2|x|); near 0, where the difference loses digits: in float32 an odd polynomial
// with a relative error of 5.5e-9, in float64 the same formula by expm1.
template <class D, class V>
HWY_INLINE V tanh(D d, V x) {
  const V magnitude = hn::Abs(x), one = constant(d, 1.0);
  if constexpr (is_float32<D>()) {
    constexpr double kNear = 0.45;
    constexpr double kPolynomial[] = {-0.333332474015034, 0.1332917662236761, -0.053337149089014664,
                                      0.018007213578448974};
    const V e = exp_of_negative(d, hn::Add(magnitude, magnitude)), square = hn::Mul(x, x);
    const V far = hn::Div(hn::Sub(one, e), hn::Add(one, e));
    const V near = hn::MulAdd(hn::Mul(magnitude, square), polynomial(d, square, kPolynomial), magnitude);
    return hn::CopySign(hn::IfThenElse(hn::Lt(magnitude, constant(d, kNear)), near, far), x);
  } else {
    const V e = hn::Expm1(d, hn::Mul(limit(d, magnitude, 0.0, 19.1), constant(d, 2.0)));  // beyond, it rounds to 1
    return hn::CopySign(hn::Div(e, hn::Add(e, constant(d, 2.0))), x);
  }
}

template <class D, class V>
HWY_INLINE V sigmoid(D d, V x) {
  const V one = constant(d, 1.0);
  if constexpr (is_float32<D>())
    return hn::Div(one, hn::Add(one, exp_of_negative(d, x)));
  else
    return hn::Div(one, hn::Add(one, exp(d, hn::Neg(x))));
}

// log(1 + e^x) = max(x, 0) + log1p(e^-|x|)
template <class D, class V>
HWY_INLINE V softplus(D d, V x) {
  const V e = exp(d, hn::Neg(hn::Abs(x)));
  const V positive = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), x);  // NaN stays
  return hn::Add(positive, hn::Log1p(d, e));
}

// ---- trigonometry

// Returns y if |x| <= `bound`; beyond it, where the vector code's range reduction loses digits, calls `exact` lane by
// lane.
template <class D, class V, class Exact>
HWY_INLINE V with_large(D d, V x, V y, double bound, Exact exact) {
  using T = hn::TFromD<D>;
  const auto large = hn::Gt(hn::Abs(x), constant(d, bound));
  if (HWY_LIKELY(hn::AllFalse(d, large))) return y;
  HWY_ALIGN T in[HWY_MAX_BYTES / sizeof(T)];
  HWY_ALIGN T out[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(x, d, in);
  hn::Store(y, d, out);
  for (size_t i = 0; i < hn::Lanes(d); ++i) {
    if (!(std::fabs(in[i]) <= static_cast<T>(bound))) out[i] = exact(in[i]);
  }
  return hn::Load(d, out);
}

inline constexpr double kTrigonometricBound = 39000;

template <class D, class V>
HWY_INLINE V sin(D d, V x) {
  const V y = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), x, hn::Sin(d, x));  // keeps -0
  return with_large(d, x, y, kTrigonometricBound, [](auto v) { return std::sin(v); });
}
template <class D, class V>
HWY_INLINE V cos(D d, V x) {
  const auto tiny = hn::Lt(hn::Abs(x), constant(d, is_float32<D>() ? 1e-4 : 1e-8));  // 1 - x^2 / 2 rounds to 1
  const V y = hn::IfThenElse(tiny, constant(d, 1.0), hn::Cos(d, x));
  return with_large(d, x, y, kTrigonometricBound, [](auto v) { return std::cos(v); });
}

// Odd polynomials of the Cephes library (S. Moshier, tanf.c and tan.c) over [-pi/4, pi/4].
template <class V>
HWY_INLINE V tan_kernel(hn::ScalableTag<float> d, V r) {
  const V z = hn::Mul(r, r);
  V p = constant(d, 9.38540185543E-3);
  for (const double c : {3.11992232697E-3, 2.44301354525E-2, 5.34112807005E-2, 1.33387994085E-1, 3.33331568548E-1}) {
    p = hn::MulAdd(p, z, constant(d, c));
  }
  return hn::MulAdd(hn::Mul(p, z), r, r);
}
template <class V>
HWY_INLINE V tan_kernel(hn::ScalableTag<double> d, V r) {
  const V z = hn::Mul(r, r);
  V p = constant(d, -1.30936939181383734205E4);
  for (const double c : {1.15351664838587416140E6, -1.79565251976484877988E7}) p = hn::MulAdd(p, z, constant(d, c));
  V q = hn::Add(z, constant(d, 1.36812963470692954678E4));
  for (const double c : {-1.32089234440210967447E6, 2.50083801823357915839E7, -5.38695755929454629881E7}) {
    q = hn::MulAdd(q, z, constant(d, c));
  }
  return hn::MulAdd(hn::Div(hn::Mul(p, z), q), r, r);
}

template <class D, class V>
HWY_INLINE V tan(D d, V x) {
  // r = x - n pi/2 with pi/2 in three parts (Cody and Waite); odd n turn tan into -1/tan.
  const V n = hn::Round(hn::Mul(x, constant(d, 0.63661977236758134308)));
  V r = x;
  if constexpr (is_float32<D>()) {
    for (const double part : {0.5 * 3.140625, 0.5 * 0.0009670257568359375, 0.5 * 6.2771141529083251953e-7,
                              0.5 * 1.2154201256553420762e-10}) {
      r = hn::NegMulAdd(n, constant(d, part), r);
    }
  } else {
    for (const double part : {0.5 * 3.1415926218032836914, 0.5 * 3.1786509424591713469e-8,
                              0.5 * 1.2246467864107188502e-16, 0.5 * 1.2736634327021899816e-24}) {
      r = hn::NegMulAdd(n, constant(d, part), r);
    }
  }
  const V t = tan_kernel(d, r);
  const V half = hn::Mul(n, constant(d, 0.5));
  V y = hn::IfThenElse(hn::Eq(half, hn::Floor(half)), t, hn::Div(constant(d, -1.0), t));
  y = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), x, y);
  return with_large(d, x, y, kTrigonometricBound, [](auto v) { return std::tan(v); });
}

template <class D, class V>
HWY_INLINE V sinh(D d, V x) {
  const V magnitude = hn::Abs(x);
  const V small = hn::Sinh(d, limit(d, magnitude, 0.0, 20.0));
  const V e = exp(d, hn::Mul(magnitude, constant(d, 0.5)));  // squared: e^x would overflow before e^x / 2 does
  const V large = hn::Mul(hn::Mul(e, constant(d, 0.5)), e);
  return hn::CopySign(hn::IfThenElse(hn::Gt(magnitude, constant(d, 20.0)), large, small), x);
}

template <class D, class V>
HWY_INLINE V cosh(D d, V x) {
  const V e = exp(d, hn::Mul(hn::Abs(x), constant(d, 0.5)));
  const V half = hn::Mul(e, constant(d, 0.5));
  return hn::MulAdd(half, e, hn::Div(constant(d, 0.5), hn::Mul(e, e)));
}

// Returns x if it is NaN or infinite, else y.
template <class D, class V>
HWY_INLINE V keep_nonfinite(D d, V x, V y) {
  const auto finite = hn::Lt(hn::Abs(x), constant(d, std::numeric_limits<double>::infinity()));
  return hn::IfThenElse(finite, y, x);
}

template <class D, class V>
HWY_INLINE V arcsinh(D d, V x) {
  return keep_nonfinite(d, x, hn::Asinh(d, x));
}
template <class D, class V>
HWY_INLINE V arccosh(D d, V x) {
  const V y = hn::IfThenElse(hn::Lt(x, constant(d, 1.0)), constant(d, std::numeric_limits<double>::quiet_NaN()),
                             hn::Acosh(d, x));
  return hn::IfThenElse(hn::Eq(x, constant(d, -std::numeric_limits<double>::infinity())),
                        constant(d, std::numeric_limits<double>::quiet_NaN()), keep_nonfinite(d, x, y));
}
template <class D, class V>
HWY_INLINE V arctanh(D d, V x) {
  const V magnitude = hn::Abs(x);
  const V argument = hn::Div(hn::Add(magnitude, magnitude), hn::Sub(constant(d, 1.0), magnitude));
  // If |x| > 1 the argument is below -1, where log1p is NaN.
  return hn::CopySign(hn::Mul(log1p(d, argument), constant(d, 0.5)), x);
}

// ---- powers

// |a|^b from logarithm and exponential, then adjusted for the signs of a and b (IEEE 754 pow). If |b log a| is large
// the result loses digits: good enough for float32, whose largest results keep a relative error of 2^-46 in float64.
template <class D, class V>
HWY_INLINE V power_of_wide(D d, V a, V b) {
  const V zero = hn::Zero(d), one = constant(d, 1.0), magnitude = hn::Abs(a);
  V y = exp(d, hn::Mul(b, log(d, magnitude)));
  const V half = hn::Mul(b, constant(d, 0.5));
  const auto whole = hn::Eq(hn::Round(b), b), even = hn::Eq(hn::Floor(half), half);
  const V signed_zero_or_less = hn::CopySign(one, a);
  const auto negative = hn::Lt(signed_zero_or_less, zero);
  y = hn::IfThenElse(hn::And(negative, hn::AndNot(even, whole)), hn::Neg(y), y);
  const auto undefined = hn::AndNot(
      whole, hn::And(hn::Lt(a, zero), hn::Lt(magnitude, constant(d, std::numeric_limits<double>::infinity()))));
  y = hn::IfThenElse(undefined, constant(d, std::numeric_limits<double>::quiet_NaN()), y);
  const auto infinite_exponent = hn::Eq(hn::Abs(b), constant(d, std::numeric_limits<double>::infinity()));
  const auto is_one =
      hn::Or(hn::Or(hn::Eq(a, one), hn::Eq(b, zero)), hn::And(hn::Eq(magnitude, one), infinite_exponent));
  return hn::IfThenElse(is_one, one, y);
}

// Computes float32 in float64: half a vector at a time.
template <class V>
HWY_INLINE V power(hn::ScalableTag<float> d, V a, V b) {
  const hn::Repartition<double, decltype(d)> wide;
  const hn::Half<decltype(d)> half;
  const auto low =
      power_of_wide(wide, hn::PromoteTo(wide, hn::LowerHalf(half, a)), hn::PromoteTo(wide, hn::LowerHalf(half, b)));
  const auto high =
      power_of_wide(wide, hn::PromoteTo(wide, hn::UpperHalf(half, a)), hn::PromoteTo(wide, hn::UpperHalf(half, b)));
  return hn::Combine(d, hn::DemoteTo(half, high), hn::DemoteTo(half, low));
}

// ---- error function

// float32: two polynomials, N. Juffa's erff (error below 1 ulp): near 0 an odd one, elsewhere 1 - exp(-p(|x|)).
template <class V>
HWY_INLINE V erf(hn::ScalableTag<float> d, V x) {
  const V t = hn::Abs(x), s = hn::Mul(x, x);
  const auto fma = [&](V a, V b, double c) HWY_ATTR { return hn::MulAdd(a, b, constant(d, c)); };
  V r = fma(constant(d, -1.72853470e-5), t, 3.83197126e-4);
  const V u = fma(constant(d, -3.88396438e-3), t, 2.42546219e-2);
  r = hn::MulAdd(r, s, u);
  r = fma(r, t, -1.06777877e-1);
  r = fma(r, t, -6.34846687e-1);
  r = fma(r, t, -1.28717512e-1);
  r = hn::MulSub(r, t, t);
  const V far = hn::CopySign(hn::Sub(constant(d, 1.0), exp(d, r)), x);
  V q = constant(d, -5.96761703e-4);
  for (const double c : {4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1, 1.28379166e-1}) q = fma(q, s, c);
  const V near = hn::MulAdd(q, x, x);
  return hn::IfThenElse(hn::Gt(t, constant(d, 0.927734375)), far, near);
}
template <class V>
HWY_INLINE V erf(hn::ScalableTag<double> d, V x) {
  HWY_ALIGN double lanes[HWY_MAX_BYTES / sizeof(double)];
  hn::Store(x, d, lanes);
  for (size_t i = 0; i < hn::Lanes(d); ++i) lanes[i] = std::erf(lanes[i]);
  return hn::Load(d, lanes);
}

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
