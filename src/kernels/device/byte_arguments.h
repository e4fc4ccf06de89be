// The parameters of the kernels of bytes.cuh, for the host and for the device.
#pragma once

#include <cstdint>

namespace hybridnet::device {

struct ByteArguments {
  const void *x, *y;
  void* out;
  int64_t n;
  float scale, other, shift;     // other: the factor of y
  const float *scales, *shifts;  // one for each channel
  int64_t channels, inner;       // elements of one channel that are consecutive
  // scale_rows: `width` elements in a row; rescale_rows: rows of `width` elements begin `row` elements apart in out.
  int64_t width, row;
};

// The smallest and largest number of each of `blocks` parts.
struct ByteRangeArguments {
  const void* x;
  float *low, *high;
  int64_t n, blocks;
};

}  // namespace hybridnet::device
