// Arithmetic of two numbers. Functors for CPU loops
// (kernels/elementwise/span_loops.h), compiled once per SIMD target, hence the toggled guard, and for devices.
#if defined(HYBRIDNET_FUNCTORS_ARITHMETIC_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HYBRIDNET_FUNCTORS_ARITHMETIC_H_
#undef HYBRIDNET_FUNCTORS_ARITHMETIC_H_
#else
#define HYBRIDNET_FUNCTORS_ARITHMETIC_H_
#endif

#include <hwy/highway.h>

#include <cmath>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {

// Integers wrap around: computed unsigned, where overflow is defined.
template <class T, class Op>
HWY_INLINE T wrapping(T a, T b, Op op) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(op(static_cast<U>(a), static_cast<U>(b)));
  } else {
    return static_cast<T>(op(a, b));
  }
}

struct Add {
  template <class T>
  HWY_INLINE T operator()(T a, T b) const {
    return wrapping(a, b, [](auto x, auto y) { return x + y; });
  }
};
struct Sub {
  template <class T>
  HWY_INLINE T operator()(T a, T b) const {
    return wrapping(a, b, [](auto x, auto y) { return x - y; });
  }
};
struct Mul {
  template <class T>
  HWY_INLINE T operator()(T a, T b) const {
    return wrapping(a, b, [](auto x, auto y) { return x * y; });
  }
};
// Integer division truncates; by zero it gives 0, and the most negative number divided by -1 wraps around.
struct Div {
  template <class T>
  HWY_INLINE T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      if (b == T(0)) return T(0);
      if constexpr (std::is_signed_v<T>) {
        if (b == T(-1)) return wrapping(T(0), a, [](auto x, auto y) { return x - y; });
      }
      return static_cast<T>(a / b);
    } else {
      return a / b;
    }
  }
};
// The result has the divisor's sign, like Python's; a zero divisor gives 0.
struct Mod {
  template <class T>
  HWY_INLINE T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      if (b == T(0)) return T(0);
      if constexpr (std::is_signed_v<T>) {
        if (b == T(-1)) return T(0);
        const T r = static_cast<T>(a % b);
        return r != 0 && (r < 0) != (b < 0) ? static_cast<T>(r + b) : r;
      } else {
        return static_cast<T>(a % b);
      }
    } else {
      if (b == T(0)) return T(0);
      const T r = std::fmod(a, b);
      return r != T(0) && (r < T(0)) != (b < T(0)) ? r + b : r;
    }
  }
};
// If one operand is NaN, the result is NaN.
struct Maximum {
  template <class T>
  HWY_INLINE T operator()(T a, T b) const {
    return a > b || a != a ? a : b;
  }
};
struct Minimum {
  template <class T>
  HWY_INLINE T operator()(T a, T b) const {
    return a < b || a != a ? a : b;
  }
};

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
