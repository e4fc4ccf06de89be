// The sum of an image, a bias of each channel and another image, which a library's convolution leaves to us. Positions
// are 32 bits wide, for division of 64-bit numbers is slow.
#pragma once

#include <type_traits>

#include "kernels/device/channel_bias_arguments.h"
#include "kernels/device/elements.cuh"

namespace hybridnet::device {

// Halves are added in float32, and rounded once.
template <class T>
__device__ void add_channel_bias(const ChannelBiasArguments& a) {
  using Sum = std::conditional_t<is_half<T>, float, T>;
  T* image = static_cast<T*>(a.image);
  for (int64_t i = first(); i < static_cast<int64_t>(a.n); i += step()) {
    Sum sum = convert<Sum>(image[i]);
    if (a.bias)
      sum += convert<Sum>(static_cast<const T*>(a.bias)[static_cast<uint32_t>(i) / a.inner % a.channels]);
    if (a.addend) sum += convert<Sum>(static_cast<const T*>(a.addend)[i]);
    image[i] = convert<T>(sum);
  }
}

}  // namespace hybridnet::device
