#include "ops/shape/slice_ranges.h"

#include <algorithm>

#include "ops/emit.h"

namespace hybridnet::ops {

SliceRange slice_range(std::optional<int64_t> begin, std::optional<int64_t> end, std::optional<int64_t> step,
                       int64_t size) {
  if (step == 0) throw ParamError({.input = "step", .expected = "a step that is not 0", .given = "0"});
  if (size < 0) return {0, step.value_or(1), kUnknownDim};
  // A step longer than the axis is equivalent to a step of the axis' size: it selects at most one element.
  const int64_t longest = std::max<int64_t>(size, 1), stride = std::clamp(step.value_or(1), -longest, longest);
  // A negative step begins at size - 1 or below and ends at -1 or above.
  const int64_t low = stride > 0 ? 0 : -1, high = stride > 0 ? size : size - 1;
  auto place = [&](std::optional<int64_t> given, int64_t otherwise) {
    if (!given) return otherwise;
    return std::clamp(*given < 0 ? *given + size : *given, low, high);
  };
  const int64_t first = place(begin, stride > 0 ? low : high), stop = place(end, stride > 0 ? high : low);
  const int64_t distance = stride > 0 ? stop - first : first - stop;
  const int64_t magnitude = stride > 0 ? stride : -stride;
  return {first, stride, distance <= 0 ? 0 : (distance + magnitude - 1) / magnitude};
}

SliceRanges slice_ranges(const OptionalInts& begin, const OptionalInts& end, const OptionalInts& step,
                         const Shape& data) {
  const size_t ndim = static_cast<size_t>(data.ndim());
  if (begin.size() != end.size() || begin.size() > ndim || step.size() > ndim) {
    throw ParamError({.input = "begin, end, step",
                      .expected = "begin and end of one length, none longer than the " + std::to_string(ndim) +
                                  " dimensions of data",
                      .given = "lengths " + std::to_string(begin.size()) + ", " + std::to_string(end.size()) + " and " +
                               std::to_string(step.size())});
  }
  SliceRanges ranges;
  ranges.reserve(ndim);
  for (size_t i = 0; i < ndim; ++i) {
    const bool bounded = i < begin.size();
    ranges.push_back(slice_range(bounded ? begin[i] : std::nullopt, bounded ? end[i] : std::nullopt,
                                 i < step.size() ? step[i] : std::nullopt, data[static_cast<int>(i)]));
  }
  return ranges;
}

Shape sliced_shape(const SliceRanges& ranges) {
  Shape shape = Shape::scalar();
  for (const SliceRange& r : ranges) shape.push_back(r.count);
  return shape;
}

void read_slice(const SliceRanges& ranges, const TensorRef& whole, const TensorRef& part) {
  if (part.size() == 0) return;
  const kernels::Strides from(*whole.shape), to(*part.shape);
  const int64_t bytes = dtype_size(whole.dtype);
  kernels::StridedCopy copy;
  int64_t offset = 0;
  for (int i = 0; i < static_cast<int>(ranges.size()); ++i) {
    offset += ranges[i].begin * from[i];
    copy.add_axis(ranges[i].count, ranges[i].step * from[i], to[i]);
  }
  copy.run(whole.as<char>() + offset * bytes, part.data, bytes);
}

void write_slice(const SliceRanges& ranges, const TensorRef& part, const TensorRef& whole) {
  if (part.size() == 0) return;
  const kernels::Strides from(*part.shape), to(*whole.shape);
  const int64_t bytes = dtype_size(whole.dtype);
  kernels::StridedCopy copy;
  int64_t offset = 0;
  for (int i = 0; i < static_cast<int>(ranges.size()); ++i) {
    offset += ranges[i].begin * to[i];
    copy.add_axis(ranges[i].count, from[i], ranges[i].step * to[i]);
  }
  copy.run(part.data, whole.as<char>() + offset * bytes, bytes);
}

Value place_slice(const Value& part, const SliceRanges& ranges, const Shape& whole) {
  static const OpRef kPlace{"_backward_slice"};
  if (!part) return {};
  SlicePlaceParams p{whole, Tuple::scalar(), Tuple::scalar()};
  for (const SliceRange& r : ranges) {
    p.begin.push_back(r.begin);
    p.step.push_back(r.step);
  }
  return call(kPlace, {part}, ParamSchema<SlicePlaceParams>::box(p));
}

Value take_slice(const Value& whole, const SliceRanges& ranges) {
  static const OpRef kSlice{"slice"};
  if (!whole) return {};
  AttrValue::List begin, end, step;
  for (const SliceRange& r : ranges) {
    const int64_t stop = r.begin + r.step * r.count;
    begin.emplace_back(r.begin);
    end.push_back(stop < 0 ? AttrValue() : AttrValue(stop));  // below 0 is before the first element, not from the end
    step.emplace_back(r.step);
  }
  return call(kSlice, {whole}, {{"begin", AttrValue(begin)}, {"end", AttrValue(end)}, {"step", AttrValue(step)}});
}

}  // namespace hybridnet::ops
