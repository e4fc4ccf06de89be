// A convolution in memory of a device, or one of its two gradients, as a library takes it.
//   y[n, o, p] = sum over i in o's group, q in kernel of x[n, i, p * stride + q * dilate - pad] * w[o, i, q]
// with x: (n, c, in...), w: (o, c / groups, kernel...), y: (n, o, out...).
#pragma once

#include <array>
#include <cstdint>

#include "hybridnet/base.h"

namespace hybridnet::device {

struct ConvolutionCall {
  // The tensor that is computed of the other two: y; the gradient of x, of that of y; the gradient of w, of that of y.
  enum class Form : uint8_t { kForward, kDataGradient, kFilterGradient };
  using Sizes =
      std::array<int64_t, 3>;  // the last `spatial` entries are used, outermost first; the others have one element

  Form form = Form::kForward;
  DType dtype = DType::kFloat32;  // floating. Halves are summed in float32.
  bool reduced_float32 = false;   // factors in float32 may be rounded to 10 bits and more
  int spatial = 2;
  int64_t n = 0, c = 0, o = 0, groups = 1;
  Sizes in{1, 1, 1}, out{1, 1, 1}, kernel{1, 1, 1}, stride{1, 1, 1}, dilate{1, 1, 1}, pad{0, 0, 0};
  bool channels_last = false,
       weights_last = false;  // the order of memory: (n, spatial..., c); (o, kernel..., c / groups)
  const void *x = nullptr, *w = nullptr, *y = nullptr;  // or their gradients; the form's tensor is written
};

}  // namespace hybridnet::device
