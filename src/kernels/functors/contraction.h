// Sums of a product and a number in plain functors. GCC contracts them to one rounding in CPU loops whose instruction
// set has FMA; devices compile without contraction and do it here, so that both give the same bits. Included once per
// SIMD target, hence the toggled guard.
#if defined(HYBRIDNET_FUNCTORS_CONTRACTION_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HYBRIDNET_FUNCTORS_CONTRACTION_H_
#undef HYBRIDNET_FUNCTORS_CONTRACTION_H_
#else
#define HYBRIDNET_FUNCTORS_CONTRACTION_H_
#endif

#include <hwy/highway.h>

#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {

template <class T>
HWY_INLINE T product_plus(T a, T b, T c) {  // a b + c
#ifdef HYBRIDNET_ONE_LANE
  return std::fma(a, b, c);
#else
  return a * b + c;
#endif
}
template <class T>
HWY_INLINE T minus_product(T c, T a, T b) {  // c - a b
#ifdef HYBRIDNET_ONE_LANE
  return std::fma(-a, b, c);
#else
  return c - a * b;
#endif
}

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
