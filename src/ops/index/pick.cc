// pick and batch_take: one element per row along an axis; and the operators of the gradients of pick, topk and sort.
#include "hybridnet/declare.h"
#include "kernels/index/gather.h"
#include "kernels/index/indices.h"
#include "ops/emit.h"
#include "ops/index/along_axis.h"

namespace hybridnet::ops {
namespace {

using kernels::IndexMode;
using kernels::RowLayout;

struct PickParams {
  std::optional<int32_t> axis;
  bool keepdims;
  IndexMode mode;
  static void describe(ParamSchema<PickParams>& schema) {
    schema.field("axis", &PickParams::axis).default_value(-1).doc("The axis to pick from; None: data is flattened.");
    schema.field("keepdims", &PickParams::keepdims).default_value(false).doc("Keep the axis with size 1.");
    schema.field("mode", &PickParams::mode)
        .choice("clip", IndexMode::kClip)
        .choice("wrap", IndexMode::kWrap)
        .default_value("clip")
        .doc("Index out of range: clip to the ends or wrap around.");
  }
};

// data as (outer, rows, inner); index and output have outer * inner elements.
RowLayout layout_of(const std::optional<int32_t>& axis_or_none, const Shape& data) {
  if (!axis_or_none) return {1, data.size(), 1};
  const int axis = normalize_axis(*axis_or_none, data.ndim());
  return {data.size(0, axis), data[axis], data.size(axis + 1, data.ndim())};
}

Shape without_axis(const Shape& data, int axis, bool keepdims) {
  Shape out = Shape::scalar();
  for (int i = 0; i < data.ndim(); ++i) {
    if (i != axis)
      out.push_back(data[i]);
    else if (keepdims)
      out.push_back(1);
  }
  return out;
}

void infer_pick(const PickParams& p, InferContext& c) {
  c.unify_dtypes({0}, {0});
  const Shape& data = c.in_shape(0);
  if (!data.rank_known()) return;
  if (!p.axis) {
    c.set_out_shape(0, p.keepdims ? Shape::unknown(data.ndim()) : c.in_shape(1));
    const Shape& index = c.in_shape(1);
    if (index.known() && index.size() != 1) {
      throw ShapeError({.input = "index", .expected = "one element, for axis is None", .given = index.str()});
    }
    if (!index.known()) return;
    Shape ones = Shape::unknown(data.ndim());
    for (int i = 0; i < data.ndim(); ++i) ones[i] = 1;
    c.set_out_shape(0, p.keepdims ? ones : index);
    return;
  }
  const int axis = normalize_axis(*p.axis, data.ndim());
  Shape out = without_axis(data, axis, p.keepdims);
  const Shape& index = c.in_shape(1);
  // The index may keep the axis or not, independent of keepdims.
  if (index.rank_known()) c.set_in_shape(1, without_axis(data, axis, index.ndim() == data.ndim()));
  if (out.ndim() == 0 && !is_np_shape()) out.push_back(1);
  c.set_out_shape(0, out);
}

void run_pick(const PickParams& p, const KernelArgs& a, kernels::IndexUse use) {
  const RowLayout layout = layout_of(p.axis, *a.in[0].shape);
  kernels::Indices ids(a.in[1]);
  ids.resolve(p.mode, layout.rows, use);
  kernels::gather_along(a.in[0].data, layout, ids.data(), 1, a.out[0].data, dtype_size(a.in[0].dtype));
}

Values pick_gradient(const PickParams& p, const GradientContext& g) {
  const Shape& data = g.input_spec(0).shape;
  const RowLayout l = layout_of(p.axis, data);
  return {scatter_along_axis(g.output_grad(0), g.input(1), l, 1, p.mode, data), Value{}};
}

void infer_batch_take(const NoParams&, InferContext& c) {
  c.unify_dtypes({0}, {0});
  c.set_in_shape(0, Shape::unknown(2));
  Shape rows = Shape({c.in_shape(0)[0]});
  c.set_in_shape(1, rows);
  c.set_out_shape(0, c.in_shape(1));
}

RowLayout layout_of(const AlongAxisParams& p) { return {p.outer, p.rows, p.inner}; }

Shape shape_of(const AlongAxisParams& p) { return p.shape; }

void infer_along(const AlongAxisParams& p, InferContext& c) {
  c.unify_dtypes({0}, {0});
  c.set_out_shape(0, shape_of(p));
}

Values scatter_along_gradient(const AlongAxisParams& p, const GradientContext& g) {
  return {gather_along_axis(g.output_grad(0), g.input(1), layout_of(p), p.count, p.mode, g.input_spec(0).shape),
          Value{}};
}

Values gather_along_gradient(const AlongAxisParams& p, const GradientContext& g) {
  return {scatter_along_axis(g.output_grad(0), g.input(1), layout_of(p), p.count, p.mode, g.input_spec(0).shape),
          Value{}};
}

Value along(const OpRef& op, const Value& a, const Value& indices, RowLayout l, int64_t count, IndexMode mode,
            const Shape& out) {
  if (!a) return {};
  return call(op, {a, indices}, ParamSchema<AlongAxisParams>::box({l.outer, l.rows, l.inner, count, mode, out}));
}

}  // namespace

Value scatter_along_axis(const Value& grads, const Value& indices, RowLayout l, int64_t count, IndexMode mode,
                         const Shape& out) {
  static const OpRef kScatter{"_scatter_along_axis"};
  return along(kScatter, grads, indices, l, count, mode, out);
}

Value gather_along_axis(const Value& data, const Value& indices, RowLayout l, int64_t count, IndexMode mode,
                        const Shape& out) {
  static const OpRef kGather{"_gather_along_axis"};
  return along(kGather, data, indices, l, count, mode, out);
}

void register_pick(OpRegistry& ops) {
  Sample wrapped;
  wrapped.inputs = {{2, 3, 4}, {2, 1, 4}};
  wrapped.attrs = {{"axis", "1"}, {"keepdims", "True"}, {"mode", "wrap"}};
  wrapped.low = -4;
  wrapped.high = 5;
  ops.declare<PickParams>("pick")
      .alias("_npx_pick")
      .alias("choose_element_0index")
      .doc("One element per position of the other axes, selected by index.")
      .input("data", "any shape, any dtype")
      .input("index", "shape of data without the axis, or with size 1 there; integers of any dtype")
      .output("output", "shape of data without the axis, or with size 1 there")
      .infer(infer_pick)
      .any_device()
      .cpu([](const PickParams& p, const KernelArgs& a) {
        run_pick(p, a, {"pick", "index"});
      })
      .gradient(pick_gradient, Saves::of({1}))
      .sample({{4, 3}, {4}}, {}, -1.0, 4.0)
      .sample({{2, 3, 4}, {3, 4}}, {{"axis", "0"}}, 0.0, 1.5)
      .sample(wrapped);
  ops.declare("batch_take")
      .doc("Element indices[i] of each row i.")
      .input("a", "shape (N, K), any dtype")
      .input("indices", "shape (N,); integers of any dtype, clipped to [0, K-1]")
      .output("output", "shape (N,)")
      .infer(infer_batch_take)
      .any_device()
      .cpu([](const NoParams&, const KernelArgs& a) {
        run_pick({1, false, IndexMode::kClip}, a, {"batch_take", "indices"});
      })
      .gradient(
          [](const NoParams&, const GradientContext& g) {
            return pick_gradient({1, false, IndexMode::kClip}, g);
          },
          Saves::of({1}))
      .sample({{4, 3}, {4}}, {}, 0.0, 2.5);
  ops.declare<AlongAxisParams>("_gather_along_axis")
      .doc("Elements of data along an axis, one per index.")
      .input("data", "outer * rows * inner elements")
      .input("indices", "outer * count * inner integers")
      .output("output", "shape given by the parameter: outer * count * inner elements")
      .infer(infer_along)
      .any_device()
      .cpu([](const AlongAxisParams& p, const KernelArgs& a) {
        kernels::Indices ids(a.in[1]);
        ids.resolve(p.mode, p.rows);
        kernels::gather_along(a.in[0].data, layout_of(p), ids.data(), p.count, a.out[0].data,
                              dtype_size(a.in[0].dtype));
      })
      .gradient(gather_along_gradient, Saves::of({1}))
      .internal()
      .sample({{2, 3, 2}, {2, 4, 2}},
              {{"outer", "2"}, {"rows", "3"}, {"inner", "2"}, {"count", "4"}, {"shape", "(2, 4, 2)"}}, 0.0, 2.5);
  ops.declare<AlongAxisParams>("_scatter_along_axis")
      .doc("Adds elements of data to zeros at the indices along an axis: the gradient of _gather_along_axis.")
      .input("data", "outer * count * inner elements")
      .input("indices", "outer * count * inner integers")
      .output("output", "shape given by the parameter: outer * rows * inner elements")
      .infer(infer_along)
      .any_device()
      .cpu([](const AlongAxisParams& p, const KernelArgs& a) {
        kernels::Indices ids(a.in[1]);
        ids.resolve(p.mode, p.rows);
        kernels::scatter_add_along(a.in[0], layout_of(p), ids.data(), p.count, a.out[0]);
      })
      .gradient(scatter_along_gradient, Saves::of({1}))
      .internal()
      .sample({{2, 4, 2}, {2, 4, 2}},
              {{"outer", "2"}, {"rows", "3"}, {"inner", "2"}, {"count", "4"}, {"shape", "(2, 3, 2)"}}, 0.0, 2.5);
}

}  // namespace hybridnet::ops
