// Rounding of numbers to bytes, on CPUs and devices.
#pragma once

#include <cstdint>
#include <limits>

namespace hybridnet::kernels {

// The nearest integer, halves to even, clamped to the range of the byte; zero for NaN. In a form that the compiler
// vectorizes.
template <typename T>
inline T nearest_step(float x) {
  static_assert(sizeof(T) == 1);
  constexpr float kLow = std::numeric_limits<T>::min(), kHigh = std::numeric_limits<T>::max();
  constexpr float kWhole = 12582912.0f;  // floats of this size, 1.5 * 2^23, are integers: adding it rounds
  float inside = x == x ? x : 0.0f;
  inside = inside < kLow ? kLow : inside;
  inside = inside > kHigh ? kHigh : inside;
  return static_cast<T>(static_cast<int32_t>((inside + kWhole) - kWhole));
}

}  // namespace hybridnet::kernels
