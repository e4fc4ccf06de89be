// take: slices along an axis, selected by an index tensor.
#include "hybridnet/declare.h"
#include "kernels/index/gather.h"
#include "kernels/index/indices.h"
#include "ops/emit.h"
#include "ops/index/row_gradient.h"

namespace hybridnet::ops {
namespace {

using kernels::IndexMode;

struct TakeParams {
  int32_t axis;
  IndexMode mode;
  static void describe(ParamSchema<TakeParams>& schema) {
    schema.field("axis", &TakeParams::axis).default_value(0).doc("The indexed axis.");
    schema.field("mode", &TakeParams::mode)
        .choice("clip", IndexMode::kClip)
        .choice("raise", IndexMode::kRaise)
        .choice("wrap", IndexMode::kWrap)
        .default_value("clip")
        .doc("Index out of range: clip to the ends, wrap around, or raise an IndexError.");
  }
};

kernels::RowLayout layout_of(const Shape& shape, int axis) {
  return {shape.size(0, axis), shape[axis], shape.size(axis + 1, shape.ndim())};
}

void infer_take(const TakeParams& p, InferContext& c) {
  c.unify_dtypes({0}, {0});
  const Shape& data = c.in_shape(0);
  const Shape& indices = c.in_shape(1);
  if (!data.rank_known() || !indices.rank_known()) return;
  if (data.ndim() == 0) throw ShapeError({.input = "a", .expected = "at least 1 dimension", .given = "()"});
  const int axis = normalize_axis(p.axis, data.ndim());
  Shape out = Shape::scalar();
  for (int i = 0; i < axis; ++i) out.push_back(data[i]);
  for (int64_t size : indices) out.push_back(size);
  for (int i = axis + 1; i < data.ndim(); ++i) out.push_back(data[i]);
  c.set_out_shape(0, out);
}

void run_take(const TakeParams& p, const KernelArgs& a) {
  const Shape& data = *a.in[0].shape;
  const int axis = normalize_axis(p.axis, data.ndim());
  kernels::Indices ids(a.in[1]);
  ids.resolve(p.mode, data[axis], {"take", "indices"});
  kernels::gather_rows(a.in[0].data, layout_of(data, axis), ids.data(), ids.size(), a.out[0].data,
                       dtype_size(a.in[0].dtype));
}

Values take_gradient(const TakeParams& p, const GradientContext& g) {
  const Shape& data = g.input_spec(0).shape;
  return {add_rows(g.output_grad(0), g.input(1), normalize_axis(p.axis, data.ndim()), p.mode, data), Value{}};
}

void run_take_grad(const TakeGradParams& p, const KernelArgs& a) {
  kernels::Indices ids(a.in[1]);
  ids.resolve(p.mode, p.shape[p.axis]);
  kernels::scatter_add_rows(a.in[0], layout_of(p.shape, p.axis), ids.data(), ids.size(), a.out[0]);
}

Values take_grad_gradient(const TakeGradParams& p, const GradientContext& g) {
  static const OpRef kTake{"take"};
  if (!g.output_grad(0)) return {};
  return {call(kTake, {g.output_grad(0), g.input(1)}, ParamSchema<TakeParams>::box({p.axis, p.mode})), Value{}};
}

}  // namespace

Value add_rows(const Value& output_grad, const Value& indices, int axis, IndexMode mode, const Shape& from) {
  static const OpRef kGrad{"_backward_take"};
  if (!output_grad) return {};
  return call(kGrad, {output_grad, indices}, ParamSchema<TakeGradParams>::box({axis, mode, from}));
}

void register_take(OpRegistry& ops) {
  Sample along_last;
  along_last.inputs = {{2, 4}, {3}};
  along_last.attrs = {{"axis", "-1"}, {"mode", "wrap"}};
  along_last.low = 0;
  along_last.high = 6;
  ops.declare<TakeParams>("take")
      .alias("_npi_take")
      .doc("Slices of a along an axis, in the order of indices.")
      .input("a", "any shape of at least 1 dimension, any dtype")
      .input("indices", "any shape; integers of any dtype")
      .output("output", "shape of a with the axis replaced by the shape of indices; dtype of a")
      .infer(infer_take)
      .any_device()
      .cpu(run_take)
      .inplace(0, 0)
      .may_raise()
      .gradient(take_gradient, Saves::of({1}))
      .sparse(SparseForm::kTakenRows)
      .sample({{4, 3}, {2, 2}}, {}, 0.0, 3.0)
      .sample(along_last)
      .sample({{2, 3, 4}, {5}}, {{"axis", "1"}}, -2.0, 5.0);
  ops.declare<TakeGradParams>("_backward_take")
      .doc("Adds slices of output_grad at the positions of indices: the gradient of take.")
      .input("output_grad", "shape of take's output")
      .input("indices", "same as in take")
      .output("output", "shape given by the parameter, dtype of output_grad")
      .infer([](const TakeGradParams& p, InferContext& c) {
        c.unify_dtypes({0}, {0});
        c.set_out_shape(0, p.shape);
      })
      .any_device()
      .cpu(run_take_grad)
      .may_raise()
      .gradient(take_grad_gradient, Saves::of({1}))
      .internal()
      .sample({{2, 3, 4}, {3}}, {{"axis", "1"}, {"shape", "(2, 5, 4)"}}, 0.0, 4.0);
}

}  // namespace hybridnet::ops
