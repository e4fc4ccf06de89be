// PTX arithmetic in C++: what an instruction does with the raw bits of its operands, by "Parallel Thread Execution
// ISA". float32 results that are NaN have the bits 0x7fffffff, as on a GPU; float64 NaN is as the host makes it.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

namespace ptx {

// Halves, which have conversions only.
struct F16 {
  uint16_t raw;
  static constexpr int kMantissa = 10, kMaxExponent = 15;
};
struct BF16 {
  uint16_t raw;
  static constexpr int kMantissa = 7, kMaxExponent = 127;
};

// The raw bits of a T.
template <class T>
using Bits =
    std::conditional_t<std::is_same_v<T, bool>, bool,
                       std::conditional_t<sizeof(T) == 8, uint64_t,
                                          std::conditional_t<sizeof(T) == 4, uint32_t,
                                                             std::conditional_t<sizeof(T) == 2, uint16_t, uint8_t>>>>;
template <class T, class From>
inline T bit_cast(From from) {
  static_assert(sizeof(T) == sizeof(From));
  T to;
  std::memcpy(&to, &from, sizeof(T));
  return to;
}
// A register as a value, and back.
template <class T>
inline T value(Bits<T> bits) {
  return bit_cast<T>(bits);
}
template <class T>
inline Bits<T> bits(T value) {
  if constexpr (std::is_same_v<T, float>) return value == value ? bit_cast<uint32_t>(value) : 0x7fffffffu;
  return bit_cast<Bits<T>>(value);
}
template <class T>
constexpr int kBits = 8 * sizeof(T);
template <class T>
inline constexpr bool kFloating = std::is_floating_point_v<T>;

enum class Round { kNearest, kZero, kDown, kUp };

// a op b with a rounding that C++ has no operator for: the mode is set around the single instruction.
constexpr unsigned kModeBits[] = {0x1f80, 0x7f80, 0x3f80, 0x5f80};
#define PTX_ROUNDED(name, instruction)                                         \
  template <Round kMode>                                                       \
  inline float name(float a, float b) {                                        \
    const unsigned mode = kModeBits[int(kMode)], nearest = kModeBits[0];       \
    __asm__ volatile("ldmxcsr %2\n\t" instruction "s %1, %0, %0\n\tldmxcsr %3" \
                     : "+x"(a)                                                 \
                     : "x"(b), "m"(mode), "m"(nearest));                       \
    return a;                                                                  \
  }                                                                            \
  template <Round kMode>                                                       \
  inline double name(double a, double b) {                                     \
    const unsigned mode = kModeBits[int(kMode)], nearest = kModeBits[0];       \
    __asm__ volatile("ldmxcsr %2\n\t" instruction "d %1, %0, %0\n\tldmxcsr %3" \
                     : "+x"(a)                                                 \
                     : "x"(b), "m"(mode), "m"(nearest));                       \
    return a;                                                                  \
  }
PTX_ROUNDED(add_rounded, "vadds")
PTX_ROUNDED(sub_rounded, "vsubs")
PTX_ROUNDED(mul_rounded, "vmuls")
PTX_ROUNDED(div_rounded, "vdivs")
PTX_ROUNDED(sqrt_rounded, "vsqrts")  // the root of b
#undef PTX_ROUNDED
template <Round kMode, class T>
inline T fma_rounded(T a, T b, T c) {
  const unsigned mode = kModeBits[int(kMode)], nearest = kModeBits[0];
  if constexpr (sizeof(T) == 4) {
    __asm__ volatile("ldmxcsr %3\n\tvfmadd213ss %2, %1, %0\n\tldmxcsr %4"
                     : "+x"(a)
                     : "x"(b), "x"(c), "m"(mode), "m"(nearest));
  } else {
    __asm__ volatile("ldmxcsr %3\n\tvfmadd213sd %2, %1, %0\n\tldmxcsr %4"
                     : "+x"(a)
                     : "x"(b), "x"(c), "m"(mode), "m"(nearest));
  }
  return a;
}

// .sat of floating types: [0, 1], and +0 for NaN.
template <bool kSaturate, class T>
inline T saturate(T x) {
  if constexpr (!kSaturate) return x;
  return x > T(0) ? (x < T(1) ? x : T(1)) : T(0);
}

template <class T, Round kMode = Round::kNearest, bool kSaturate = false>
inline Bits<T> add(Bits<T> a, Bits<T> b) {
  if constexpr (kFloating<T>) {
    if constexpr (kMode != Round::kNearest)
      return bits(saturate<kSaturate>(add_rounded<kMode>(value<T>(a), value<T>(b))));
    return bits(saturate<kSaturate>(value<T>(a) + value<T>(b)));
  } else if constexpr (kSaturate) {
    T sum;
    if (!__builtin_add_overflow(value<T>(a), value<T>(b), &sum)) return sum;
    return value<T>(a) < 0 ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
  } else {
    return Bits<T>(a + b);
  }
}
template <class T, Round kMode = Round::kNearest, bool kSaturate = false>
inline Bits<T> sub(Bits<T> a, Bits<T> b) {
  if constexpr (kFloating<T>) {
    if constexpr (kMode != Round::kNearest)
      return bits(saturate<kSaturate>(sub_rounded<kMode>(value<T>(a), value<T>(b))));
    return bits(saturate<kSaturate>(value<T>(a) - value<T>(b)));
  } else if constexpr (kSaturate) {
    T difference;
    if (!__builtin_sub_overflow(value<T>(a), value<T>(b), &difference)) return difference;
    return value<T>(a) < 0 ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
  } else {
    return Bits<T>(a - b);
  }
}
template <class T, Round kMode = Round::kNearest, bool kSaturate = false>
inline Bits<T> mul(Bits<T> a, Bits<T> b) {  // floating types only
  if constexpr (kMode != Round::kNearest)
    return bits(saturate<kSaturate>(mul_rounded<kMode>(value<T>(a), value<T>(b))));
  return bits(saturate<kSaturate>(value<T>(a) * value<T>(b)));
}
template <class T, Round kMode = Round::kNearest, bool kSaturate = false>
inline Bits<T> fma(Bits<T> a, Bits<T> b, Bits<T> c) {
  const T x = value<T>(a), y = value<T>(b), z = value<T>(c);
  if constexpr (kMode != Round::kNearest) {
    return bits(saturate<kSaturate>(fma_rounded<kMode>(x, y, z)));
  } else if constexpr (sizeof(T) == 4) {
    return bits(saturate<kSaturate>(__builtin_fmaf(x, y, z)));
  } else {
    return bits(saturate<kSaturate>(__builtin_fma(x, y, z)));
  }
}
template <class T, Round kMode = Round::kNearest>
inline Bits<T> divide(Bits<T> a, Bits<T> b) {  // floating types only
  if constexpr (kMode != Round::kNearest) return bits(div_rounded<kMode>(value<T>(a), value<T>(b)));
  return bits(value<T>(a) / value<T>(b));
}
template <class T, Round kMode = Round::kNearest>
inline Bits<T> rcp(Bits<T> a) {
  return divide<T, kMode>(bits(T(1)), a);
}
template <class T, Round kMode = Round::kNearest>
inline Bits<T> sqrt(Bits<T> a) {
  if constexpr (kMode != Round::kNearest) return bits(sqrt_rounded<kMode>(value<T>(a), value<T>(a)));
  if constexpr (sizeof(T) == 4) return bits(__builtin_sqrtf(value<T>(a)));
  return bits(T(__builtin_sqrt(value<T>(a))));
}

// Integers. Products have twice the bits first.
template <class T>
using Wide =
    std::conditional_t<sizeof(T) == 8, std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>,
                       std::conditional_t<sizeof(T) == 4, std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>,
                                          std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>>>;
template <class T>
inline Bits<T> mul_lo(Bits<T> a, Bits<T> b) {
  return Bits<T>(static_cast<uint64_t>(a) * b);
}
template <class T>
inline Bits<T> mul_hi(Bits<T> a, Bits<T> b) {
  return Bits<T>((static_cast<Wide<T>>(value<T>(a)) * value<T>(b)) >> kBits<T>);
}
template <class T>
inline auto mul_wide(Bits<T> a, Bits<T> b) {
  return static_cast<std::make_unsigned_t<Wide<T>>>(static_cast<Wide<T>>(value<T>(a)) * value<T>(b));
}
// Division by zero does not stop a GPU: all bits are set. The least value by -1 wraps.
template <class T>
inline Bits<T> div_integer(Bits<T> a, Bits<T> b) {
  if (b == 0) return Bits<T>(~Bits<T>(0));
  if constexpr (std::is_signed_v<T>) {
    if (value<T>(b) == -1) return Bits<T>(Bits<T>(0) - a);
  }
  return Bits<T>(value<T>(a) / value<T>(b));
}
template <class T>
inline Bits<T> rem(Bits<T> a, Bits<T> b) {
  if (b == 0) return a;
  if constexpr (std::is_signed_v<T>) {
    if (value<T>(b) == -1) return 0;
  }
  return Bits<T>(value<T>(a) % value<T>(b));
}
template <class T>
inline Bits<T> abs(Bits<T> a) {
  constexpr Bits<T> kSign = Bits<T>(Bits<T>(1) << (kBits<T> - 1));
  if constexpr (kFloating<T>) return Bits<T>(a & ~kSign);
  return value<T>(a) < 0 ? Bits<T>(Bits<T>(0) - a) : a;
}
template <class T>
inline Bits<T> neg(Bits<T> a) {
  constexpr Bits<T> kSign = Bits<T>(Bits<T>(1) << (kBits<T> - 1));
  if constexpr (kFloating<T>) return Bits<T>(a ^ kSign);
  return Bits<T>(Bits<T>(0) - a);
}
template <class T>
inline Bits<T> sad(Bits<T> a, Bits<T> b, Bits<T> c) {
  return Bits<T>(c + (value<T>(a) < value<T>(b) ? b - a : a - b));
}

// min and max: one NaN gives the other operand, or NaN (kKeepNan); -0 is less than +0.
template <class T, bool kKeepNan = false>
inline Bits<T> min(Bits<T> a, Bits<T> b) {
  const T x = value<T>(a), y = value<T>(b);
  if constexpr (kFloating<T>) {
    if (x != x || y != y) return kKeepNan || (x != x && y != y) ? bits(x + y) : (x != x ? b : a);
    if (x == y) return Bits<T>(a | b);
  }
  return x < y ? a : b;
}
template <class T, bool kKeepNan = false>
inline Bits<T> max(Bits<T> a, Bits<T> b) {
  const T x = value<T>(a), y = value<T>(b);
  if constexpr (kFloating<T>) {
    if (x != x || y != y) return kKeepNan || (x != x && y != y) ? bits(x + y) : (x != x ? b : a);
    if (x == y) return Bits<T>(a & b);
  }
  return x < y ? b : a;
}
template <class T>
inline Bits<T> copysign(Bits<T> sign, Bits<T> magnitude) {
  constexpr Bits<T> kSign = Bits<T>(1) << (kBits<T> - 1);
  return (sign & kSign) | (magnitude & ~kSign);
}

// Comparisons: eq ... ge are false for NaN, equ ... geu are true for NaN.
enum class Compare { kEq, kNe, kLt, kLe, kGt, kGe, kNum, kNan };
template <class T, Compare kHow, bool kUnordered = false>
inline bool compare(Bits<T> a, Bits<T> b) {
  const T x = value<T>(a), y = value<T>(b);
  if constexpr (kFloating<T>) {
    const bool is_nan = x != x || y != y;
    if constexpr (kHow == Compare::kNum) return !is_nan;
    if constexpr (kHow == Compare::kNan) return is_nan;
    if (is_nan) return kUnordered;
  }
  switch (kHow) {
    case Compare::kEq:
      return x == y;
    case Compare::kNe:
      return x != y;
    case Compare::kLt:
      return x < y;
    case Compare::kLe:
      return x <= y;
    case Compare::kGt:
      return x > y;
    default:
      return x >= y;
  }
}
enum class Class { kFinite, kInfinite, kNumber, kNotANumber, kNormal, kSubnormal };
template <class T, Class kClass>
inline bool testp(Bits<T> a) {
  const T x = value<T>(a);
  switch (kClass) {
    case Class::kFinite:
      return std::isfinite(x);
    case Class::kInfinite:
      return std::isinf(x);
    case Class::kNumber:
      return x == x;
    case Class::kNotANumber:
      return x != x;
    case Class::kNormal:
      return std::isnormal(x);
    default:
      return std::isfinite(x) && !std::isnormal(x) && x != 0;
  }
}

}  // namespace ptx
