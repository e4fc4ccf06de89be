// Functions for gradient rules on the columns of deformable convolution.
#pragma once

#include "ops/contrib/deformable_params.h"
#include "ops/emit.h"

namespace hybridnet::ops {

// The columns (channels, taps, batch, points) of an image.
Value deformable_columns_of(const Value& image, const Value& offset, const ColumnsParams& p);
// The adjoint: an image of shape p.image_shape, the sum of the columns read from it.
Value deformable_image_of(const Value& columns, const Value& offset, const ColumnsParams& p);
// The gradient of the offsets: `columns` (channels, taps, batch, points) times the derivative of the columns of `image`
// by the positions of the points.
Value deformable_offset_gradient(const Value& columns, const Value& image, const Value& offset, const ColumnsParams& p);

}  // namespace hybridnet::ops
