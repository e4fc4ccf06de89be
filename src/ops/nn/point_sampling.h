// Reading images at points: what BilinearSampler and SpatialTransformer share.
#pragma once

#include "hybridnet/op.h"
#include "kernels/point_sampling.h"

namespace hybridnet::ops {

// Sizes of image (batch, channels, height, width) read at grid (batch, 2, out_height, out_width).
kernels::PointSampling point_sampling(const Shape& image, const Shape& grid);

// Gradients of the image and of the grid when `dy` arrives at the image read at the grid. Either may be unwanted
// (null).
Values point_sampling_gradients(const Value& dy, const Value& image, const Value& grid, bool want_image,
                                bool want_grid);

int64_t point_sampling_cost_ns(const TensorSpec& out);

}  // namespace hybridnet::ops
