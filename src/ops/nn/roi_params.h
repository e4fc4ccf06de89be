// What operators on regions of interest share.
#pragma once

#include <cstdint>

#include "hybridnet/op.h"

namespace hybridnet::ops {

inline void check_pooled_size(const Tuple& size) {
  if (size.ndim() == 2 && size[0] > 0 && size[1] > 0) return;
  throw ParamError({.input = "pooled_size", .expected = "a positive height and width", .given = size.str()});
}

// data (batch, channels, height, width) and rois (regions, 5).
inline void infer_regions(InferContext& c) {
  const auto require = [&c](int i, int ndim, const char* axes) {
    if (c.in_shape(i).rank_known() && c.in_shape(i).ndim() != ndim)
      throw ShapeError({.input = c.input_name(i), .expected = axes, .given = c.in_shape(i).str()});
    c.set_in_shape(i, Shape::unknown(ndim));
  };
  require(0, 4, "(batch, channels, height, width)");
  require(1, 2, "(regions, 5)");
  c.set_in_shape(1, Shape{kUnknownDim, 5});
}

// The image that a region lies in: -1 if there is no such image.
template <typename T>
int64_t image_of(T number, int64_t batch) {
  return number > T(-1) && number < static_cast<T>(batch) ? static_cast<int64_t>(number) : -1;
}

}  // namespace hybridnet::ops
