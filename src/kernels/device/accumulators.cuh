// The types in which kernels add and multiply elements.
#pragma once

#include "kernels/device/elements.cuh"

namespace hybridnet::device {

// The type for adding and multiplying integers, in which overflow wraps around; other types map to themselves.
template <class T, bool kIsInteger = std::is_integral_v<T> && !std::is_same_v<T, bool>>
struct Wrapping {
  using type = T;
};
template <class T>
struct Wrapping<T, true> {
  using type = std::make_unsigned_t<T>;
};
template <class T>
using wrapping_t = typename Wrapping<T>::type;

// The type in which products and sums of elements are kept (accumulator_t of hybridnet/base.h).
template <class T>
using accumulator_t =
    std::conditional_t<is_half<T>, float, std::conditional_t<std::is_floating_point_v<T>, T, int64_t>>;

}  // namespace hybridnet::device
