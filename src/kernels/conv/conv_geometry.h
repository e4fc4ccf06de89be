// The sizes of one convolution and the layouts of its tensors, for all implementations.
#pragma once

#include <array>
#include <cstdint>

#include "hybridnet/base.h"

namespace hybridnet::kernels {

// x: (n, c, in...), w: (o, c / groups, kernel...), y: (n, o, out...); the last `spatial` of the three entries are used,
// outermost first.
//   y[n, o, p] = sum over i in o's group, q in kernel of x[n, i, p * stride + q * dilate - pad] * w[o, i, q]
struct ConvGeometry {
  int spatial = 2;
  int64_t n = 0, c = 0, o = 0, groups = 1;
  std::array<int64_t, 3> in{1, 1, 1}, out{1, 1, 1}, kernel{1, 1, 1}, stride{1, 1, 1}, dilate{1, 1, 1}, pad{0, 0, 0};
  // Physical order: (n, spatial..., c) instead of (n, c, spatial...); weights (o, kernel..., c / groups).
  bool channels_last = false, weights_last = false;

  int64_t in_size() const { return in[0] * in[1] * in[2]; }
  int64_t out_size() const { return out[0] * out[1] * out[2]; }
  int64_t kernel_size() const { return kernel[0] * kernel[1] * kernel[2]; }
  double flops() const {
    return 2.0 * static_cast<double>(n * o) * static_cast<double>(out_size()) *
           static_cast<double>(c / groups * kernel_size());
  }
  // The flops() of a convolution of one group that takes equally long. With few channels per group, reads dominate the
  // multiplications: on an AMD EPYC with AVX2 depthwise 3x3 runs at a third of the speed.
  double work() const { return flops() * (groups > 1 && c / groups < 8 ? 3 : 1); }
  bool empty() const { return n * c * o * in_size() * out_size() * kernel_size() == 0; }
};

// The distance in elements between neighbors along (n, c, three spatial axes).
struct ConvStrides {
  int64_t n, c;
  std::array<int64_t, 3> spatial;
  static ConvStrides of(int64_t channels, const std::array<int64_t, 3>& sizes, bool channels_last) {
    const int64_t inner = channels_last ? channels : 1;
    const int64_t plane = sizes[0] * sizes[1] * sizes[2];
    return {channels * plane, channels_last ? 1 : plane, {sizes[1] * sizes[2] * inner, sizes[2] * inner, inner}};
  }
};

}  // namespace hybridnet::kernels
