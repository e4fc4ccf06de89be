// Comparisons and logic of two numbers: 1 or 0 in the type of the inputs. Functors for CPU loops
// (kernels/elementwise/span_loops.h), compiled once per SIMD target, hence the toggled guard, and for devices.
#if defined(HYBRIDNET_FUNCTORS_COMPARISONS_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HYBRIDNET_FUNCTORS_COMPARISONS_H_
#undef HYBRIDNET_FUNCTORS_COMPARISONS_H_
#else
#define HYBRIDNET_FUNCTORS_COMPARISONS_H_
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {

struct Equal {
  template <class T>
  HWY_INLINE T operator()(T a, T b) const {
    return a == b ? T(1) : T(0);
  }
};
struct NotEqual {
  template <class T>
  HWY_INLINE T operator()(T a, T b) const {
    return a != b ? T(1) : T(0);
  }
};
struct Greater {
  template <class T>
  HWY_INLINE T operator()(T a, T b) const {
    return a > b ? T(1) : T(0);
  }
};
struct GreaterEqual {
  template <class T>
  HWY_INLINE T operator()(T a, T b) const {
    return a >= b ? T(1) : T(0);
  }
};
struct Lesser {
  template <class T>
  HWY_INLINE T operator()(T a, T b) const {
    return a < b ? T(1) : T(0);
  }
};
struct LesserEqual {
  template <class T>
  HWY_INLINE T operator()(T a, T b) const {
    return a <= b ? T(1) : T(0);
  }
};
struct LogicalAnd {
  template <class T>
  HWY_INLINE T operator()(T a, T b) const {
    return (a != T(0)) & (b != T(0)) ? T(1) : T(0);
  }
};
struct LogicalOr {
  template <class T>
  HWY_INLINE T operator()(T a, T b) const {
    return (a != T(0)) | (b != T(0)) ? T(1) : T(0);
  }
};
struct LogicalXor {
  template <class T>
  HWY_INLINE T operator()(T a, T b) const {
    return (a != T(0)) != (b != T(0)) ? T(1) : T(0);
  }
};

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
