// Bilinear sampling of images at points, shared by BilinearSampler and SpatialTransformer.
#pragma once

#include "hybridnet/op.h"
#include "kernels/image/point_sampling.h"

namespace hybridnet::ops {

// Sizes of a sampling of image (batch, channels, height, width) at grid (batch, 2, out_height, out_width).
kernels::PointSampling point_sampling(const Shape& image, const Shape& grid);

// Gradients of the image and of the grid for the gradient `dy` of the sampled image. Each is null unless requested.
Values point_sampling_gradients(const Value& dy, const Value& image, const Value& grid, bool want_image,
                                bool want_grid);

int64_t point_sampling_cost_ns(const TensorSpec& out);

}  // namespace hybridnet::ops
