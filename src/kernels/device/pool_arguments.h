// The parameters of the kernels of pooling.cuh, for the host and for the device.
#pragma once

#include <cstdint>

namespace hybridnet::device {

// The fields of PoolGeometry (kernels/conv/pooling.h), and the arrays.
struct PoolArguments {
  const void *x, *y, *dy;  // max_pool_gather: dy contains the values
  void* to;
  int64_t n, c;
  int64_t in[3], out[3], kernel[3], stride[3], pad[3];
  int32_t power, count_pad;
};

}  // namespace hybridnet::device
