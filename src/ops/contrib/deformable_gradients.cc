#include "ops/contrib/deformable_gradients.h"

namespace hybridnet::ops {
namespace {

const OpRef kColumns{"_deformable_columns"}, kSpread{"_deformable_spread"};

}  // namespace

Value deformable_columns_of(const Value& image, const Value& offset, const ColumnsParams& p) {
  return call(kColumns, {image, offset}, ParamSchema<ColumnsParams>::box(p));
}

Value deformable_image_of(const Value& columns, const Value& offset, const ColumnsParams& p) {
  return call(kSpread, {columns, offset}, ParamSchema<ColumnsParams>::box(p));
}

Value deformable_offset_gradient(const Value& columns, const Value& image, const Value& offset,
                                 const ColumnsParams& p) {
  const Shape& shape = spec_of(offset).shape;
  const int64_t batch = shape[0], groups = p.num_deformable_group, taps = p.taps(), points = shape[2] * shape[3];
  const int64_t channels = spec_of(image).shape[1];
  const auto moved = [&](bool y) {
    if (y ? p.along_y : p.along_x)
      return zeros(Shape({groups, taps, 1, batch, points}), spec_of(columns).dtype);  // bilinear
    ColumnsParams along = p;
    (y ? along.along_y : along.along_x) = true;
    const Value change = columns * deformable_columns_of(image, offset, along);
    const Value per_group =
        sum(reshape(change, Shape({groups, channels / groups, taps, batch, points})), Tuple({1}), false);
    return reshape(per_group, Shape({groups, taps, 1, batch, points}));
  };
  const Value both = concat({moved(true), moved(false)}, 2);  // (groups, taps, 2, batch, points)
  return reshape(transpose(both, Tuple({3, 0, 1, 2, 4})), shape);
}

}  // namespace hybridnet::ops
