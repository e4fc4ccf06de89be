// e^x for softmax, whose arguments are not positive after the maximum is subtracted. Included once per SIMD target,
// hence the toggled guard.
#if defined(HYBRIDNET_EXP_TO_ONE_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HYBRIDNET_EXP_TO_ONE_H_
#undef HYBRIDNET_EXP_TO_ONE_H_
#else
#define HYBRIDNET_EXP_TO_ONE_H_
#endif

#include <hwy/highway.h>

#include "kernels/elementwise/vector_math.h"

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {

// Returns e^x for x <= 0 or slightly above; results below 1.2e-38 become 0, NaN stays. Cephes' expf.
template <class D, class V>
HWY_INLINE V exp_to_one(D d, V x) {
  if constexpr (sizeof(hn::TFromD<D>) == 8) {
    return exp(d, x);
  } else {
    const hn::RebindToSigned<D> di;
    const V least = hn::Set(d, -87.3F);
    const V bounded = hn::Max(least, x);
    const V power = hn::Round(hn::Mul(bounded, hn::Set(d, 1.44269504088896341F)));
    V r = hn::NegMulAdd(power, hn::Set(d, 0.693359375F), bounded);
    r = hn::NegMulAdd(power, hn::Set(d, -2.12194440e-4F), r);
    V p = hn::MulAdd(hn::Set(d, 1.9875691500e-4F), r, hn::Set(d, 1.3981999507e-3F));
    p = hn::MulAdd(p, r, hn::Set(d, 8.3334519073e-3F));
    p = hn::MulAdd(p, r, hn::Set(d, 4.1665795894e-2F));
    p = hn::MulAdd(p, r, hn::Set(d, 1.6666665459e-1F));
    p = hn::MulAdd(p, r, hn::Set(d, 5.0000001201e-1F));
    p = hn::Add(hn::MulAdd(p, hn::Mul(r, r), r), hn::Set(d, 1.0F));
    const auto exponent = hn::ShiftLeft<23>(hn::ConvertTo(di, power));
    const V scaled = hn::BitCast(d, hn::Add(hn::BitCast(di, p), exponent));
    return hn::IfThenElse(hn::Eq(x, x), hn::IfThenZeroElse(hn::Lt(x, least), scaled), x);
  }
}

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
