// Trigonometric and hyperbolic functions and their inverses. Functors for CPU loops
// (kernels/elementwise/span_loops.h), compiled once per SIMD target, hence the toggled guard, and for devices.
#if defined(HYBRIDNET_FUNCTORS_TRIGONOMETRY_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HYBRIDNET_FUNCTORS_TRIGONOMETRY_H_
#undef HYBRIDNET_FUNCTORS_TRIGONOMETRY_H_
#else
#define HYBRIDNET_FUNCTORS_TRIGONOMETRY_H_
#endif

#include <hwy/highway.h>

#include "kernels/elementwise/vector_math.h"

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

struct Sin {
  static constexpr bool kVector = true;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return sin(d, x);
  }
};
struct Cos {
  static constexpr bool kVector = true;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return cos(d, x);
  }
};
struct Tan {
  static constexpr bool kVector = true;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return tan(d, x);
  }
};
struct Arcsin {
  static constexpr bool kVector = true;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return hn::Asin(d, x);
  }
};
struct Arccos {
  static constexpr bool kVector = true;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return hn::Acos(d, x);
  }
};
struct Arctan {
  static constexpr bool kVector = true;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return hn::Atan(d, x);
  }
};
struct Sinh {
  static constexpr bool kVector = true;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return sinh(d, x);
  }
};
struct Cosh {
  static constexpr bool kVector = true;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return cosh(d, x);
  }
};
struct Arcsinh {
  static constexpr bool kVector = true;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return arcsinh(d, x);
  }
};
struct Arccosh {
  static constexpr bool kVector = true;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return arccosh(d, x);
  }
};
struct Arctanh {
  static constexpr bool kVector = true;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return arctanh(d, x);
  }
};

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
