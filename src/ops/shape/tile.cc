// tile and repeat: repeat the data as a whole or element by element.
#include "base/checked_size.h"
#include "hybridnet/declare.h"
#include "kernels/memory/strided_copy.h"
#include "ops/emit.h"

namespace hybridnet::ops {
namespace {

struct TileParams {
  Tuple reps;
  static void describe(ParamSchema<TileParams>& schema) {
    schema.field("reps", &TileParams::reps).doc("Number of repetitions along each axis, aligned at the last one.");
    schema.check([](const TileParams& p) {
      for (int64_t r : p.reps) {
        if (r < 0)
          throw ParamError({.input = "reps", .expected = "numbers that are not negative", .given = p.reps.str()});
      }
    });
  }
};

struct RepeatParams {
  int64_t repeats;
  std::optional<int32_t> axis;
  static void describe(ParamSchema<RepeatParams>& schema) {
    schema.field("repeats", &RepeatParams::repeats).at_least(0).doc("Number of repetitions of each element.");
    schema.field("axis", &RepeatParams::axis)
        .none_by_default()
        .doc("Axis along which to repeat; None: data is flattened.");
  }
};

// Sizes of the data and repetitions, with leading ones up to the larger number of axes.
struct TileAxes {
  int ndim;
  int64_t size[kMaxDims], reps[kMaxDims];
  TileAxes(const Shape& data, const Tuple& given) : ndim(std::max(data.ndim(), given.ndim())) {
    for (int i = 0; i < ndim; ++i) {
      const int d = i - (ndim - data.ndim()), r = i - (ndim - given.ndim());
      size[i] = d >= 0 ? data[d] : 1;
      reps[i] = r >= 0 ? given[r] : 1;
    }
  }
};

void infer_tile(const TileParams& p, InferContext& c) {
  c.unify_dtypes();
  // Classic shapes do not support empty results.
  if (!is_np_shape() && std::find(p.reps.begin(), p.reps.end(), 0) != p.reps.end())
    throw ParamError({.input = "reps", .expected = "positive numbers", .given = p.reps.str()});
  if (!c.in_shape(0).rank_known()) return;
  const TileAxes axes(c.in_shape(0), p.reps);
  Shape out = Shape::unknown(axes.ndim);
  for (int i = 0; i < axes.ndim; ++i) {
    if (axes.size[i] >= 0) out[i] = checked_times(axes.size[i], axes.reps[i]);
  }
  c.set_out_shape(0, out);
}

void run_tile(const TileParams& p, const KernelArgs& a) {
  const TileAxes axes(*a.in[0].shape, p.reps);
  const kernels::Strides to(*a.out[0].shape);
  kernels::StridedCopy copy;
  int64_t stride[kMaxDims], next = 1;
  for (int i = axes.ndim - 1; i >= 0; --i) {
    stride[i] = next;
    next *= axes.size[i];
  }
  for (int i = 0; i < axes.ndim; ++i) {
    copy.add_axis(axes.reps[i], 0, axes.size[i] * to[i]);
    copy.add_axis(axes.size[i], stride[i], to[i]);
  }
  copy.run(a.in[0].data, a.out[0].data, dtype_size(a.in[0].dtype));
}

// Sums the copies: the gradient is reshaped so that each repeated axis has a separate axis of repetitions, then summed
// over these.
Values tile_gradient(const TileParams& p, const GradientContext& g) {
  const Shape& in = g.input_spec(0).shape;
  const TileAxes axes(in, p.reps);
  if (!g.output_grad(0)) return {};
  if (in.size() == 0 || g.output_spec(0).shape.size() == 0) return {zeros(in, g.input_spec(0).dtype)};
  Shape split = Shape::scalar();
  Tuple summed = Tuple::scalar();
  for (int i = 0; i < axes.ndim; ++i) {
    if (axes.reps[i] != 1) {
      summed.push_back(split.ndim());
      split.push_back(axes.reps[i]);
    }
    if (axes.size[i] != 1 || axes.reps[i] == 1) split.push_back(axes.size[i]);
  }
  Value grad = reshape(g.output_grad(0), split);
  if (summed.ndim() > 0) grad = sum(grad, summed, false);
  return {reshape(grad, in)};
}

// data as (outer, n, inner), in which each of the n slices is repeated.
struct RepeatLayout {
  int64_t outer, n, inner;
  RepeatLayout(const RepeatParams& p, const Shape& data) : outer(1), n(1), inner(1) {
    if (!p.axis) {
      n = data.size();
      return;
    }
    const int axis = normalize_axis(*p.axis, data.ndim());
    outer = data.size(0, axis);
    n = data[axis];
    inner = data.size(axis + 1, data.ndim());
  }
};

void infer_repeat(const RepeatParams& p, InferContext& c) {
  c.unify_dtypes();
  const Shape& in = c.in_shape(0);
  if (!in.rank_known()) return;
  if (!p.axis) {
    c.set_out_shape(0, Shape({in.known() ? checked_times(in.size(), p.repeats) : kUnknownDim}));
    return;
  }
  const int axis = normalize_axis(*p.axis, in.ndim());
  Shape out = in;
  out[axis] = in[axis] < 0 ? kUnknownDim : checked_times(in[axis], p.repeats);
  c.set_out_shape(0, out);
}

void run_repeat(const RepeatParams& p, const KernelArgs& a) {
  const RepeatLayout l(p, *a.in[0].shape);
  kernels::StridedCopy copy;
  copy.add_axis(l.outer * l.n, l.inner, p.repeats * l.inner);
  copy.add_axis(p.repeats, 0, l.inner);
  copy.add_axis(l.inner, 1, 1);
  copy.run(a.in[0].data, a.out[0].data, dtype_size(a.in[0].dtype));
}

Values repeat_gradient(const RepeatParams& p, const GradientContext& g) {
  const Shape& in = g.input_spec(0).shape;
  if (!g.output_grad(0)) return {};
  if (in.size() == 0 || p.repeats == 0) return {zeros(in, g.input_spec(0).dtype)};
  const RepeatLayout l(p, in);
  const Value split = reshape(g.output_grad(0), Shape({l.outer * l.n, p.repeats, l.inner}));
  return {reshape(sum(split, Tuple({1}), false), in)};
}

}  // namespace

void register_tile(OpRegistry& ops) {
  ops.declare<TileParams>("tile")
      .alias("_npi_tile")
      .doc("Repeats data as a whole along its axes.")
      .input("data", "any shape, any dtype")
      .names_its_input()
      .output("output", "sizes of data times reps; as many axes as the longer of the two")
      .infer(infer_tile)
      .any_device()
      .cpu(run_tile)
      .gradient(tile_gradient, Saves::nothing())
      .sample({{2, 3}}, {{"reps", "(2, 2)"}})
      .sample({{2, 3}}, {{"reps", "(3,)"}})
      .sample({{3}}, {{"reps", "(2, 1, 2)"}});
  ops.declare<RepeatParams>("repeat")
      .alias("_np_repeat")
      .doc("Repeats every element, or slice along an axis.")
      .input("data", "any shape, any dtype")
      .names_its_input()
      .output("output", "shape of data with the size of the axis times repeats; flat if axis is None")
      .infer(infer_repeat)
      .any_device()
      .cpu(run_repeat)
      .gradient(repeat_gradient, Saves::nothing())
      .sample({{2, 3}}, {{"repeats", "2"}})
      .sample({{2, 3}}, {{"repeats", "3"}, {"axis", "0"}})
      .sample({{2, 3, 2}}, {{"repeats", "2"}, {"axis", "-1"}});
}

}  // namespace hybridnet::ops
