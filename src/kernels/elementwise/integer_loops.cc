// Functions of integers: bitwise operations, common multiples and divisors.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/integer_loops.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/highway.h>

#include "kernels/elementwise/loop_tables.h"
#include "kernels/elementwise/span_loops.h"

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

void fill_integers(SpanLoops* table) {
  add<BitAnd, 2>(table, Pointwise::kBitAnd, 0.1, IntegerTypes());
  add<BitOr, 2>(table, Pointwise::kBitOr, 0.1, IntegerTypes());
  add<BitXor, 2>(table, Pointwise::kBitXor, 0.1, IntegerTypes());
  add<BitNot, 1>(table, Pointwise::kBitNot, 0.1, IntegerTypes());
  add<Lcm, 2>(table, Pointwise::kLcm, 30, IntegerTypes());
  add<Gcd, 2>(table, Pointwise::kGcd, 30, IntegerTypes());
}

}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hybridnet::kernels {
HWY_EXPORT(fill_integers);
void fill_integers(SpanLoops* table) { HWY_DYNAMIC_DISPATCH(fill_integers)(table); }
}  // namespace hybridnet::kernels
#endif
