// Elements of arrays in kernels: halves as storage types, and conversion between dtypes with the results of the CPU
// (kernels/elementwise/convert.h).
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/device/kernel.cuh"

namespace hybridnet::device {

template <class To, class From>
__device__ inline To bits_as(From x) {
  static_assert(sizeof(To) == sizeof(From), "bits_as keeps the size");
  To y;
  memcpy(&y, &x, sizeof(y));
  return y;
}

// IEEE binary16 and bfloat16; conversions round to nearest even. The constants are explained in hybridnet/base.h.
struct float16 {
  uint16_t bits;
  float16() = default;
  __device__ explicit float16(float value) {
    uint32_t x = bits_as<uint32_t>(value);
    const uint32_t sign = x >> 16 & 0x8000u;
    x &= 0x7fffffffu;
    if (x >= 0x47800000u) {
      x = x > 0x7f800000u ? 0x7e00u | (x >> 13 & 0x3ffu) : 0x7c00u;
    } else if (x < 0x38800000u) {
      x = bits_as<uint32_t>(bits_as<float>(x) + 0.5f) - 0x3f000000u;
    } else {
      x = (x - 0x38000000u + 0xfffu + (x >> 13 & 1u)) >> 13;
    }
    bits = static_cast<uint16_t>(sign | x);
  }
  __device__ explicit operator float() const {
    uint32_t x = (bits & 0x7fffu) << 13;
    const uint32_t exponent = x & 0x0f800000u;
    x += 0x38000000u;
    if (exponent == 0x0f800000u) {
      x += 0x38000000u;
    } else if (exponent == 0) {
      x = bits_as<uint32_t>(bits_as<float>(x + 0x00800000u) - bits_as<float>(0x38800000u));
    }
    return bits_as<float>(x | (bits & 0x8000u) << 16);
  }
};
struct bfloat16 {
  uint16_t bits;
  bfloat16() = default;
  __device__ explicit bfloat16(float value) {
    const uint32_t x = bits_as<uint32_t>(value);
    const bool nan = (x & 0x7fffffffu) > 0x7f800000u;
    bits = static_cast<uint16_t>(nan ? (x >> 16 | 0x40u) : (x + 0x7fffu + (x >> 16 & 1u)) >> 16);
  }
  __device__ explicit operator float() const { return bits_as<float>(static_cast<uint32_t>(bits) << 16); }
};

template <class T>
inline constexpr bool is_half = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;

// Floating to integer truncates through int64: values outside of int64 saturate and NaN becomes 0; narrower integers
// then wrap around. To bool: every value except 0 is true. Halves go through float32.
template <class To, class From>
__device__ inline To convert(From x) {
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else if constexpr (is_half<From>) {
    return convert<To>(static_cast<float>(x));
  } else if constexpr (is_half<To>) {
    return To(convert<float>(x));
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    constexpr From low = static_cast<From>(std::numeric_limits<int64_t>::min());
    if (x != x) return To(0);
    if (x <= low) return static_cast<To>(std::numeric_limits<int64_t>::min());
    if (x >= -low) return static_cast<To>(std::numeric_limits<int64_t>::max());
    return static_cast<To>(static_cast<int64_t>(x));
  } else {
    return static_cast<To>(x);
  }
}

}  // namespace hybridnet::device
