// The selection of begin, end and step along each axis, and the kernels that read and write it.
#pragma once

#include <string>

#include "hybridnet/op.h"
#include "kernels/memory/strided_copy.h"
#include "storage/temporary.h"

namespace hybridnet::ops {

// `count` elements of an axis: begin, begin + step, ... count is -1 if the axis' size is unknown.
struct SliceRange {
  int64_t begin = 0, step = 1, count = kUnknownDim;
};
using SliceRanges = Temporary<SliceRange>;  // one per axis

// Follows Python's slices: negative bounds count from the end, bounds beyond the axis are clamped, None is the end of
// the axis at which a walk with this step begins or ends. Throws ParamError if step is 0.
SliceRange slice_range(std::optional<int64_t> begin, std::optional<int64_t> end, std::optional<int64_t> step,
                       int64_t size);

// Returns one range per axis of `data`; axes without bounds are selected whole. Throws ParamError for more bounds than
// axes.
SliceRanges slice_ranges(const OptionalInts& begin, const OptionalInts& end, const OptionalInts& step,
                         const Shape& data);

Shape sliced_shape(const SliceRanges& ranges);

// Copies the selection of `whole` to the dense tensor `part`, and back.
void read_slice(const SliceRanges& ranges, const TensorRef& whole, const TensorRef& part);
void write_slice(const SliceRanges& ranges, const TensorRef& part, const TensorRef& whole);

// Parameters of the internal operator _backward_slice: the position of its input in a tensor of zeros. All sizes are
// literal.
struct SlicePlaceParams {
  Tuple shape, begin, step;
  static void describe(ParamSchema<SlicePlaceParams>& schema) {
    schema.field("shape", &SlicePlaceParams::shape).doc("Shape of the output.");
    schema.field("begin", &SlicePlaceParams::begin).doc("Position of the first element of the input, per axis.");
    schema.field("step", &SlicePlaceParams::step)
        .doc("Distance in the output between adjacent elements of the input, per axis.");
  }
};

// The gradient of taking the slice `ranges` from a tensor of shape `whole`.
Value place_slice(const Value& part, const SliceRanges& ranges, const Shape& whole);
// The slice `ranges` of whole.
Value take_slice(const Value& whole, const SliceRanges& ranges);

}  // namespace hybridnet::ops
