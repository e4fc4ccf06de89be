// What begin, end and step select from each axis, and the kernels that read and write such a selection.
#pragma once

#include <string>

#include "hybridnet/op.h"
#include "kernels/strided_copy.h"
#include "storage/temporary.h"

namespace hybridnet::ops {

// `count` elements of an axis: begin, begin + step, ... count is -1 while the axis' size is unknown.
struct SliceRange {
  int64_t begin = 0, step = 1, count = kUnknownDim;
};
using SliceRanges = Temporary<SliceRange>;  // one per axis

// As Python slices: negative bounds count from the end, bounds beyond the axis are cut, None is the end that step comes
// from or goes to. Throws ParamError where step is 0.
SliceRange slice_range(std::optional<int64_t> begin, std::optional<int64_t> end, std::optional<int64_t> step,
                       int64_t size);

// One range per axis of `data`; axes without bounds are taken whole. Throws ParamError for more bounds than axes.
SliceRanges slice_ranges(const OptionalInts& begin, const OptionalInts& end, const OptionalInts& step,
                         const Shape& data);

Shape sliced_shape(const SliceRanges& ranges);

// Dense tensor `part` = the selection from `whole`, and back.
void read_slice(const SliceRanges& ranges, const TensorRef& whole, const TensorRef& part);
void write_slice(const SliceRanges& ranges, const TensorRef& part, const TensorRef& whole);

// Parameters of the internal op _backward_slice: where its input stands in a tensor of zeros. All sizes are literal.
struct SlicePlaceParams {
  Tuple shape, begin, step;
  static void describe(ParamSchema<SlicePlaceParams>& schema) {
    schema.field("shape", &SlicePlaceParams::shape).doc("Shape of the output.");
    schema.field("begin", &SlicePlaceParams::begin).doc("Where the first element of the input stands, per axis.");
    schema.field("step", &SlicePlaceParams::step).doc("Distance of neighbours of the input in the output, per axis.");
  }
};

// The gradient of taking `ranges` from a tensor of shape `whole`.
Value place_slice(const Value& part, const SliceRanges& ranges, const Shape& whole);
// `ranges` of whole.
Value take_slice(const Value& whole, const SliceRanges& ranges);

}  // namespace hybridnet::ops
