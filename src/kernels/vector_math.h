// Vector mathematics for float32 and float64 on top of Highway's contrib/math: exact limits, NaN and infinities, and the
// functions it lacks. Errors measured against float64 (float32) and mpmath (float64) are in docs/accuracy.md.
// Included once per SIMD target, hence the toggled guard.
#if defined(HYBRIDNET_VECTOR_MATH_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HYBRIDNET_VECTOR_MATH_H_
#undef HYBRIDNET_VECTOR_MATH_H_
#else
#define HYBRIDNET_VECTOR_MATH_H_
#endif

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <limits>

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D>
HWY_INLINE hn::Vec<D> constant(D d, double value) {
  return hn::Set(d, static_cast<hn::TFromD<D>>(value));
}
template <class D>
constexpr bool is_float32() { return sizeof(hn::TFromD<D>) == 4; }

// x limited to [low, high]; NaN stays.
template <class D, class V>
HWY_INLINE V limit(D d, V x, double low, double high) {
  const V lo = constant(d, low), hi = constant(d, high);
  return hn::IfThenElse(hn::Gt(x, hi), hi, hn::IfThenElse(hn::Lt(x, lo), lo, x));
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

// What log functions give where Highway's are not defined: -inf at `pole`, NaN below it, inf at inf.
template <class D, class V>
HWY_INLINE V log_limits(D d, V x, V y, double pole) {
  const V at = constant(d, pole);
  const V infinity = constant(d, std::numeric_limits<double>::infinity());
  const V below = hn::IfThenElse(hn::Eq(x, at), hn::Neg(infinity), constant(d, std::numeric_limits<double>::quiet_NaN()));
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

// tanh(|x|) = (e^2|x| - 1) / (e^2|x| + 1), by expm1 so that small arguments keep their digits.
template <class D, class V>
HWY_INLINE V tanh(D d, V x) {
  const V magnitude = hn::Abs(x);
  // Beyond the limit the result rounds to 1.
  const V bounded = limit(d, magnitude, 0.0, is_float32<D>() ? 9.1 : 19.1);
  const V e = hn::Expm1(d, hn::Add(bounded, bounded));
  return hn::CopySign(hn::Div(e, hn::Add(e, constant(d, 2.0))), x);
}

template <class D, class V>
HWY_INLINE V sigmoid(D d, V x) {
  const V one = constant(d, 1.0);
  return hn::Div(one, hn::Add(one, exp(d, hn::Neg(x))));
}

// log(1 + e^x) = max(x, 0) + log1p(e^-|x|)
template <class D, class V>
HWY_INLINE V softplus(D d, V x) {
  const V e = exp(d, hn::Neg(hn::Abs(x)));
  const V positive = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), x);  // NaN stays
  return hn::Add(positive, hn::Log1p(d, e));
}

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
