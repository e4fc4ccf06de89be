// slice_axis and slice_like: slices with bounds on some axes only.
#include "hybridnet/declare.h"
#include "ops/emit.h"
#include "ops/shape/slice_ranges.h"

namespace hybridnet::ops {
namespace {

struct SliceAxisParams {
  int32_t axis;
  int64_t begin;
  std::optional<int64_t> end;
  static void describe(ParamSchema<SliceAxisParams>& schema) {
    schema.field("axis", &SliceAxisParams::axis).doc("The axis to slice; negative counts from the end.");
    schema.field("begin", &SliceAxisParams::begin).doc("First index; negative counts from the end.");
    schema.field("end", &SliceAxisParams::end).doc("End, exclusive; None: to the end.");
  }
};

SliceRanges whole_ranges(const Shape& shape) {
  SliceRanges ranges;
  ranges.reserve(static_cast<size_t>(shape.ndim()));
  for (int64_t size : shape) ranges.push_back({0, 1, size});
  return ranges;
}

SliceRanges ranges_of(const SliceAxisParams& p, const Shape& data) {
  SliceRanges ranges = whole_ranges(data);
  const int axis = normalize_axis(p.axis, data.ndim());
  ranges[static_cast<size_t>(axis)] = slice_range(p.begin, p.end, std::nullopt, data[axis]);
  return ranges;
}

void infer_slice_axis(const SliceAxisParams& p, InferContext& c) {
  c.unify_dtypes();
  const Shape& in = c.in_shape(0);
  if (!in.rank_known()) return;
  c.set_out_shape(0, sliced_shape(ranges_of(p, in)));
  Shape rest = c.out_shape(0);
  rest[normalize_axis(p.axis, in.ndim())] = kUnknownDim;
  c.set_in_shape(0, rest);
}

struct SliceLikeParams {
  Tuple axes;
  static void describe(ParamSchema<SliceLikeParams>& schema) {
    schema.field("axes", &SliceLikeParams::axes)
        .default_value(AttrValue(Tuple::scalar()))
        .doc("Axes that are sliced to the sizes of shape_like; empty: all.");
  }
};

SliceRanges ranges_of(const SliceLikeParams& p, const Shape& data, const Shape& like) {
  SliceRanges ranges = whole_ranges(data);
  auto cut = [&](int axis, int like_axis) {
    if (like[like_axis] >= 0 && data[axis] >= 0 && like[like_axis] > data[axis]) {
      throw ShapeError(
          {.input = "shape_like",
           .expected = "at most size " + std::to_string(data[axis]) + " in axis " + std::to_string(like_axis),
           .given = like.str(),
           .because = "data has shape " + data.str()});
    }
    ranges[static_cast<size_t>(axis)].count = like[like_axis];
  };
  if (p.axes.ndim() == 0) {
    if (like.ndim() != data.ndim()) {
      throw ShapeError({.input = "shape_like",
                        .expected = "as many dimensions as data, " + std::to_string(data.ndim()),
                        .given = like.str(),
                        .fix = "name the axes to cut with axes="});
    }
    for (int i = 0; i < data.ndim(); ++i) cut(i, i);
  }
  for (int64_t axis : p.axes) cut(normalize_axis(axis, data.ndim(), "axes"), normalize_axis(axis, like.ndim(), "axes"));
  return ranges;
}

void infer_slice_like(const SliceLikeParams& p, InferContext& c) {
  c.unify_dtypes({0}, {0});
  if (!c.in_shape(0).rank_known() || !c.in_shape(1).rank_known()) return;
  c.set_out_shape(0, sliced_shape(ranges_of(p, c.in_shape(0), c.in_shape(1))));
}

}  // namespace

void register_slice_axis(OpRegistry& ops) {
  ops.declare<SliceAxisParams>("slice_axis")
      .doc("Copies a range of indices of one axis.")
      .input("data", "any shape, any dtype")
      .output("output", "shape of data with size end - begin along the axis")
      .infer(infer_slice_axis)
      .takes_part_of_input()
      .any_device()
      .cpu([](const SliceAxisParams& p, const KernelArgs& a) {
        read_slice(ranges_of(p, *a.in[0].shape), a.in[0], a.out[0]);
      })
      .renumbered_params([](SliceAxisParams p, std::span<const int> moved_to) {
        p.axis = moved_to[static_cast<size_t>(normalize_axis(p.axis, static_cast<int>(moved_to.size())))];
        return std::optional(p);
      })
      .gradient(
          [](const SliceAxisParams& p, const GradientContext& g) {
            const Shape& whole = g.input_spec(0).shape;
            return Values{place_slice(g.output_grad(0), ranges_of(p, whole), whole)};
          },
          Saves::nothing())
      .sparse(SparseForm::kSliceAxis)
      .sample({{4, 5}}, {{"axis", "0"}, {"begin", "1"}, {"end", "3"}})
      .sample({{4, 5}}, {{"axis", "-1"}, {"begin", "-3"}, {"end", "None"}})
      .sample({{4, 5, 2}}, {{"axis", "1"}, {"begin", "0"}, {"end", "-1"}});
  ops.declare<SliceLikeParams>("slice_like")
      .doc("The leading part of data with the sizes of shape_like, along all or some axes.")
      .input("data", "any shape, any dtype")
      .input("shape_like", "defines sizes only; any dtype")
      .output("output", "dtype of data")
      .infer(infer_slice_like)
      .any_device()
      .cpu([](const SliceLikeParams& p, const KernelArgs& a) {
        read_slice(ranges_of(p, *a.in[0].shape, *a.in[1].shape), a.in[0], a.out[0]);
      })
      .gradient(
          [](const SliceLikeParams& p, const GradientContext& g) {
            const Shape& whole = g.input_spec(0).shape;
            return Values{place_slice(g.output_grad(0), ranges_of(p, whole, g.input_spec(1).shape), whole), Value{}};
          },
          Saves::nothing())
      .sample({{4, 5}, {2, 3}}, {})
      .sample({{4, 5, 6}, {2, 3}}, {{"axes", "(1,)"}});
}

}  // namespace hybridnet::ops
