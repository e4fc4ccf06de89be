// Exponentials, logarithms and the activations made of them. Functors for CPU loops
// (kernels/elementwise/span_loops.h), compiled once per SIMD target, hence the toggled guard, and for devices.
#if defined(HYBRIDNET_FUNCTORS_EXPONENTIALS_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HYBRIDNET_FUNCTORS_EXPONENTIALS_H_
#undef HYBRIDNET_FUNCTORS_EXPONENTIALS_H_
#else
#define HYBRIDNET_FUNCTORS_EXPONENTIALS_H_
#endif

#include <hwy/highway.h>

#include "kernels/elementwise/vector_math.h"

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {

struct Exp {
  static constexpr bool kVector = true;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return exp(d, x);
  }
};
struct Expm1 {
  static constexpr bool kVector = true;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return expm1(d, x);
  }
};
struct Log {
  static constexpr bool kVector = true;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return log(d, x);
  }
};
struct Log2 {
  static constexpr bool kVector = true;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return log2(d, x);
  }
};
struct Log10 {
  static constexpr bool kVector = true;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return log10(d, x);
  }
};
struct Log1p {
  static constexpr bool kVector = true;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return log1p(d, x);
  }
};
struct Tanh {
  static constexpr bool kVector = true;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return tanh(d, x);
  }
};
struct Sigmoid {
  static constexpr bool kVector = true;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return sigmoid(d, x);
  }
};
struct Softrelu {
  static constexpr bool kVector = true;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return softplus(d, x);
  }
};

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
