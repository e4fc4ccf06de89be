// Columns of deformable convolution in gradient rules.
#pragma once

#include "ops/contrib/deformable_params.h"
#include "ops/emit.h"

namespace hybridnet::ops {

// Columns (channels, taps, batch, points) of an image.
Value deformable_columns_of(const Value& image, const Value& offset, const ColumnsParams& p);
// The image (shape p.image_shape) that columns came from.
Value deformable_image_of(const Value& columns, const Value& offset, const ColumnsParams& p);
// The gradient of the offsets: `columns` (channels, taps, batch, points) times how the columns of `image` change as
// points move.
Value deformable_offset_gradient(const Value& columns, const Value& image, const Value& offset, const ColumnsParams& p);

}  // namespace hybridnet::ops
