// Functions of integers: bitwise operations, common multiples and divisors. Functors for CPU loops
// (kernels/elementwise/span_loops.h), compiled once per SIMD target, hence the toggled guard, and for devices.
#if defined(HYBRIDNET_FUNCTORS_INTEGERS_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HYBRIDNET_FUNCTORS_INTEGERS_H_
#undef HYBRIDNET_FUNCTORS_INTEGERS_H_
#else
#define HYBRIDNET_FUNCTORS_INTEGERS_H_
#endif

#include <hwy/highway.h>

#include <cstdint>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {

struct BitAnd {
  template <class T>
  HWY_INLINE T operator()(T a, T b) const {
    return static_cast<T>(a & b);
  }
};
struct BitOr {
  template <class T>
  HWY_INLINE T operator()(T a, T b) const {
    return static_cast<T>(a | b);
  }
};
struct BitXor {
  template <class T>
  HWY_INLINE T operator()(T a, T b) const {
    return static_cast<T>(a ^ b);
  }
};
struct BitNot {
  template <class T>
  HWY_INLINE T operator()(T a) const {
    if constexpr (std::is_same_v<T, bool>) {
      return !a;
    } else {
      return static_cast<T>(~a);
    }
  }
};

// The absolute value as an unsigned number, which also exists for the smallest integer.
template <class T>
HWY_INLINE uint64_t size_of(T a) {
  const auto bits = static_cast<uint64_t>(a);
  return a < T(0) ? uint64_t{0} - bits : bits;
}
HWY_INLINE uint64_t common_divisor(uint64_t a, uint64_t b) {
  while (b != 0) {
    const uint64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}
struct Gcd {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(common_divisor(size_of(a), size_of(b)));
  }
};
struct Lcm {
  template <class T>
  T operator()(T a, T b) const {
    const uint64_t x = size_of(a), y = size_of(b);
    return x == 0 || y == 0 ? T(0) : static_cast<T>(x / common_divisor(x, y) * y);
  }
};

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
