// The parameters of the kernels of random.cuh, for the host and for the device.
#pragma once

#include <cstdint>

namespace hybridnet::device {

// Elements [begin, begin + n) of a tensor.
struct RandomArguments {
  void* out;
  int64_t begin, n;
  uint64_t seed, stream;
  double low, high;  // uniform: the bounds; normal: mean and deviation; dropout: `high` is the factor of kept elements
  uint64_t below;    // the probability of a one, times 2^32
  const void* in;    // dropout
  void* mask;        // dropout: bytes, or null if they are not kept
};

}  // namespace hybridnet::device
