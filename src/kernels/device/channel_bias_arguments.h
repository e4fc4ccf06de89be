// The parameters of the kernels of channel_bias.cuh, for the host and for the device.
#pragma once

#include <cstdint>

namespace hybridnet::device {

// image[i] += bias[i / inner % channels] + addend[i] for i < n; bias and addend may be null.
struct ChannelBiasArguments {
  void* image;
  const void *bias, *addend;
  uint32_t n, channels, inner;
};

}  // namespace hybridnet::device
