// cvt of PTX: every pair of types, with the rounding, saturation and NaN rules of the instruction.
#pragma once

#include "ptx_numbers.h"

namespace ptx {

enum class ToInteger { kNone, kNearest, kZero, kDown, kUp };  // rni, rzi, rmi, rpi

template <class T>
constexpr bool kHalf = std::is_same_v<T, F16> || std::is_same_v<T, BF16>;
template <class T>
constexpr bool kAnyFloat = kFloating<T> || kHalf<T>;

template <class F>
inline F to_integer(F x, ToInteger how) {
  switch (how) {
    case ToInteger::kNearest:
      return std::nearbyint(x);
    case ToInteger::kZero:
      return std::trunc(x);
    case ToInteger::kDown:
      return std::floor(x);
    case ToInteger::kUp:
      return std::ceil(x);
    default:
      return x;
  }
}

// A half as a float: exact.
template <class H>
inline float widen(uint16_t bits) {
  if constexpr (std::is_same_v<H, BF16>) return bit_cast<float>(static_cast<uint32_t>(bits) << 16);
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16, exponent = bits >> 10 & 31, mantissa = bits & 1023;
  if (exponent == 31) return bit_cast<float>(sign | 0x7f800000u | mantissa << 13);
  const float magnitude =
      exponent == 0 ? float(mantissa) * 0x1p-24f : std::ldexp(float(1024 + mantissa), int(exponent) - 25);
  return sign ? -magnitude : magnitude;
}

inline long double round_to_integer(long double x, bool negative, Round mode) {
  switch (mode) {
    case Round::kNearest:
      return nearbyintl(x);
    case Round::kZero:
      return floorl(x);
    case Round::kDown:
      return negative ? ceill(x) : floorl(x);
    default:
      return negative ? floorl(x) : ceill(x);
  }
}
// A number as a half, rounded once: long double holds every float64 and every 64-bit integer.
template <class H>
inline uint16_t narrow(long double x, Round mode) {
  const bool negative = std::signbit(x);
  const uint16_t sign = negative ? 0x8000 : 0;
  const uint16_t infinity = uint16_t((2 * H::kMaxExponent + 1) << H::kMantissa);
  if (x != x) return 0x7fff;
  if (std::isinf(x)) return sign | infinity;
  const long double magnitude = fabsl(x);
  if (magnitude == 0) return sign;
  const int exponent = std::max(std::ilogb(magnitude), 1 - H::kMaxExponent);
  const long double units = round_to_integer(scalbnl(magnitude, H::kMantissa - exponent), negative, mode);
  // A carry out of the mantissa goes on into the exponent, as the format intends.
  const long biased = exponent + H::kMaxExponent;
  const long steps = ((biased - 1) << H::kMantissa) + long(units);
  if (steps < infinity) return sign | uint16_t(steps);
  const bool stays_finite =
      mode == Round::kZero || (mode == Round::kDown && !negative) || (mode == Round::kUp && negative);
  return sign | (stays_finite ? infinity - 1 : infinity);
}

// Moves a nearest result to the neighbor that the mode asks for. `exact` holds the number without rounding.
template <class F, class Exact>
inline F directed(F nearest, Exact exact, bool too_small, bool too_large, Round mode) {
  const bool negative = exact < Exact(0);
  const F infinity = std::numeric_limits<F>::infinity();
  const bool down = mode == Round::kDown || (mode == Round::kZero && !negative);
  if (down && too_large) return std::nextafter(nearest, -infinity);
  if (!down && too_small) return std::nextafter(nearest, infinity);
  return nearest;
}
inline float narrow_float(double x, Round mode) {
  const float nearest = float(x);
  if (mode == Round::kNearest || x != x || std::isinf(x)) return nearest;
  return directed(nearest, x, double(nearest) < x, double(nearest) > x, mode);
}
template <class F, class S>
inline F from_integer(S integer, Round mode) {
  const F nearest = F(integer);
  if (mode == Round::kNearest) return nearest;
  const __int128 back = static_cast<__int128>(nearest), exact = integer;
  return directed(nearest, exact, back<exact, back> exact, mode);
}

template <class D, class F>
inline D float_to_integer(F x, ToInteger how, bool zero_for_nan) {
  constexpr D kLeast = std::numeric_limits<D>::min(), kMost = std::numeric_limits<D>::max();
  if (x != x) return zero_for_nan ? D(0) : D(uint64_t(1) << (kBits<D> - 1));
  const double whole = to_integer(double(x), how);
  const double end = std::ldexp(1.0, kBits<D> - (std::is_signed_v<D> ? 1 : 0));  // the first number above kMost
  if (whole >= end) return kMost;
  if (whole < double(kLeast)) return kLeast;
  return D(whole);
}

template <class D, class S>
inline D saturate_integer(S x) {
  const __int128 wide = x, least = std::numeric_limits<D>::min(), most = std::numeric_limits<D>::max();
  return D(wide < least ? least : wide > most ? most : wide);
}

// cvt.kMode.D.S. An integer result has the type D: assigning it to a wider register extends its sign.
template <class D, class S, ToInteger kToInteger, Round kMode, bool kSaturate>
inline auto cvt(Bits<S> raw) {
  if constexpr (kHalf<S>) {
    if constexpr (std::is_same_v<D, S> && kToInteger == ToInteger::kNone && !kSaturate) {
      return raw;
    } else {
      return cvt<D, float, kToInteger, kMode, kSaturate>(bit_cast<uint32_t>(widen<S>(raw)));
    }
  } else if constexpr (!kAnyFloat<D> && !kAnyFloat<S>) {
    if constexpr (kSaturate) return saturate_integer<D>(value<S>(raw));
    return D(value<S>(raw));
  } else if constexpr (!kAnyFloat<D>) {
    // "Zero if source is not .f64 and destination is not .s64, .u64": ISA, cvt.
    return float_to_integer<D>(value<S>(raw), kToInteger, sizeof(S) < 8 && sizeof(D) < 8);
  } else if constexpr (kHalf<D>) {
    if constexpr (kFloating<S>) {
      return narrow<D>(saturate<kSaturate>(to_integer(value<S>(raw), kToInteger)), kMode);
    } else {
      return narrow<D>(static_cast<long double>(value<S>(raw)), kMode);
    }
  } else if constexpr (!kAnyFloat<S>) {
    return bits(saturate<kSaturate>(from_integer<D>(value<S>(raw), kMode)));
  } else {
    const S x = to_integer(value<S>(raw), kToInteger);
    if constexpr (sizeof(D) < sizeof(S)) return bits(saturate<kSaturate>(narrow_float(x, kMode)));
    return bits(saturate<kSaturate>(D(x)));
  }
}
// cvt.f16x2.f32 d, a, b: a is the upper half.
template <class H, Round kMode>
inline uint32_t cvt_pair(uint32_t upper, uint32_t lower) {
  const uint32_t high = narrow<H>(value<float>(upper), kMode);
  return high << 16 | narrow<H>(value<float>(lower), kMode);
}

}  // namespace ptx
