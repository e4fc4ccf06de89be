// Integer elements of arrays: sums that wrap around, and conversion of real numbers.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "hybridnet/base.h"

namespace hybridnet::kernels {

// The type for adding and multiplying elements of an integer type: the unsigned type of its size, in which overflow
// wraps around, like NumPy's; in signed types it is undefined. Other types map to themselves.
template <typename T>
struct wrapping {
  using type = T;
};
template <std::signed_integral T>
struct wrapping<T> {
  using type = std::make_unsigned_t<T>;
};
template <typename T>
using wrapping_t = typename wrapping<T>::type;

// Like dispatch_dtype, for code that adds and multiplies elements: calls f with a value of the wrapping_t of their
// type.
template <typename F>
decltype(auto) dispatch_wrapping(DType dtype, F&& f) {
  return dispatch_dtype(dtype, [&](auto zero) -> decltype(auto) { return f(wrapping_t<decltype(zero)>{}); });
}

// Truncates toward zero; values outside of T saturate, and NaN becomes `nan`.
template <std::integral T = int64_t>
constexpr T to_integer(double value, T nan = 0) {
  constexpr T kLeast = std::numeric_limits<T>::min(), kMost = std::numeric_limits<T>::max();
  constexpr double kBelow = static_cast<double>(kLeast) - 1, kBeyond = static_cast<double>(kMost / 2 + 1) * 2;
  if (value > kBelow && value < kBeyond) return static_cast<T>(value);
  return value < 0 ? kLeast : value > 0 ? kMost : nan;
}

// Converts a computed number to an element of an array; integers by to_integer, bool by a comparison with zero.
template <typename T, typename N>
constexpr T saturated_element(N value) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
    return to_integer<T>(value);
  else
    return static_cast<T>(value);
}

}  // namespace hybridnet::kernels
