// _contrib_index_copy and _contrib_index_array.
#include "hybridnet/declare.h"
#include "hybridnet/threads.h"
#include "kernels/device/values_arguments.h"
#include "kernels/index/gather.h"
#include "kernels/index/indices.h"
#include "ops/device_launch.h"
#include "ops/emit.h"
#include "ops/shape/reshape_codes.h"

namespace hybridnet::ops {
namespace {

struct IndexCopyParams {
  int32_t axis;
  static void describe(ParamSchema<IndexCopyParams>& schema) {
    schema.field("axis", &IndexCopyParams::axis)
        .default_value(0)
        .doc("The axis along which slices are replaced; negative values count from the end.");
  }
};

kernels::RowLayout layout_of(const Shape& shape, int axis) {
  return {shape.size(0, axis), shape[axis], shape.size(axis + 1, shape.ndim())};
}

void infer_index_copy(const IndexCopyParams& p, InferContext& c) {
  c.unify_dtypes({0, 2}, {0});
  c.set_out_shape(0, c.in_shape(0));
  c.set_in_shape(0, c.out_shape(0));
  const Shape& old = c.in_shape(0);
  c.set_in_shape(1, Shape::unknown(1));
  if (!old.rank_known()) return;
  if (old.ndim() == 0) throw ShapeError({.input = "old_tensor", .expected = "at least 1 dimension", .given = "()"});
  const int axis = normalize_axis(p.axis, old.ndim());
  Shape rows = old;
  rows[axis] = c.in_shape(1)[0];
  c.set_in_shape(2, rows);
  c.set_in_shape(1, Shape({c.in_shape(2)[axis]}));
}

void run_index_copy(const IndexCopyParams& p, const KernelArgs& a) {
  const Shape& shape = *a.out[0].shape;
  const int axis = normalize_axis(p.axis, shape.ndim());
  // Before the output is written: in place, an index out of range leaves old_tensor as it was.
  kernels::Indices ids(a.in[1]);
  ids.resolve(kernels::IndexMode::kRaise, shape[axis]);
  copy_first_input(a);
  kernels::scatter_rows(a.in[2].data, layout_of(shape, axis), ids.data(), ids.size(), a.out[0].data,
                        dtype_size(a.out[0].dtype));
}

void infer_gather_last(const IndexCopyParams& p, InferContext& c) {
  c.unify_dtypes({0}, {0});
  c.set_in_shape(1, Shape::unknown(1));
  const Shape& data = c.in_shape(0);
  if (!data.rank_known() || !c.in_shape(1).rank_known()) return;
  Shape rows = data;
  rows[normalize_axis(p.axis, data.ndim())] = c.in_shape(1)[0];
  c.set_out_shape(0, rows);
}

void run_gather_last(const IndexCopyParams& p, const KernelArgs& a) {
  const Shape& shape = *a.in[0].shape;
  const int axis = normalize_axis(p.axis, shape.ndim());
  kernels::Indices ids(a.in[1]);
  ids.resolve(kernels::IndexMode::kRaise, shape[axis]);
  kernels::gather_last_rows(a.in[0].data, layout_of(shape, axis), ids.data(), ids.size(), a.out[0].data,
                            dtype_size(a.out[0].dtype));
}

const OpRef kCopy{"_contrib_index_copy"}, kGatherLast{"_backward_index_copy"};

Values index_copy_gradient(const IndexCopyParams& p, const GradientContext& g) {
  const Value out = g.output_grad(0), ids = g.input(1);
  if (!out) return {};
  Values grads(3);
  const TensorSpec& rows = g.input_spec(2);
  const std::string axis = std::to_string(p.axis);
  if (g.wants(0)) grads[0] = call(kCopy, {out, ids, zeros(rows.shape, rows.dtype)}, {{"axis", axis}});
  if (g.wants(2)) grads[2] = call(kGatherLast, {out, ids}, {{"axis", axis}});
  return grads;
}

Values gather_last_gradient(const IndexCopyParams& p, const GradientContext& g) {
  const Value out = g.output_grad(0);
  if (!out) return {};
  const TensorSpec& data = g.input_spec(0);
  return {call(kCopy, {zeros(data.shape, data.dtype), g.input(1), out}, {{"axis", std::to_string(p.axis)}}), Value{}};
}

struct IndexArrayParams {
  std::optional<Tuple> axes;
  static void describe(ParamSchema<IndexArrayParams>& schema) {
    schema.field("axes", &IndexArrayParams::axes)
        .none_by_default()
        .doc("The axes whose indices are returned; None: all.");
  }
};

Tuple axes_of(const IndexArrayParams& p, int ndim) {
  Tuple axes = Tuple::scalar();
  if (!p.axes) {
    for (int i = 0; i < ndim; ++i) axes.push_back(i);
  } else {
    for (int64_t axis : *p.axes) axes.push_back(normalize_axis(axis, ndim, "axes"));
  }
  return axes;
}

void run_index_array(const IndexArrayParams& p, const KernelArgs& a) {
  const Shape& data = *a.in[0].shape;
  const Tuple axes = axes_of(p, data.ndim());
  int64_t* out = a.out[0].as<int64_t>();
  if (device::current()) {
    device::IndexArrayArguments arguments{.out = out, .n = a.in[0].size(), .axes = axes.ndim()};
    for (int k = 0; k < axes.ndim(); ++k) {
      arguments.sizes[k] = data[static_cast<int>(axes[k])];
      arguments.inner[k] = data.size(static_cast<int>(axes[k]) + 1, data.ndim());
    }
    return on_device::launch("values.cuh", "IndexArrayArguments", "index_array", arguments.n, arguments);
  }
  parallel_for(a.in[0].size(), 2.5, [&](int64_t begin, int64_t end) {
    int64_t index[kMaxDims];
    int64_t rest = begin;
    for (int i = data.ndim() - 1; i >= 0; --i) {
      index[i] = rest % data[i];
      rest /= data[i];
    }
    for (int64_t at = begin; at < end; ++at) {
      for (int k = 0; k < axes.ndim(); ++k) out[at * axes.ndim() + k] = index[axes[k]];
      for (int i = data.ndim() - 1; i >= 0 && ++index[i] == data[i]; --i) index[i] = 0;
    }
  });
}

}  // namespace

void register_index_copy(OpRegistry& ops) {
  Sample sample;
  sample.inputs = {{4, 3}, {1}, {1, 3}};
  sample.low = 0.0;
  sample.high = 3.4;
  sample.note = "one index, so that none repeats";
  Sample inner;
  inner.inputs = {{2, 4, 3}, {1}, {2, 1, 3}};
  inner.attrs = {{"axis", "1"}};
  inner.low = 0.0;
  inner.high = 3.4;
  inner.note = sample.note;
  ops.declare<IndexCopyParams>("_contrib_index_copy")
      .doc(
          "old_tensor with the slices at index_vector along an axis replaced by those of new_tensor; if indices "
          "repeat, "
          "the last slice is kept.")
      .input("old_tensor", "shape (..., N, ...) with N at the axis, any dtype")
      .input("index_vector", "shape (M,); integers of any dtype, negative ones count from the end")
      .input("new_tensor", "shape (..., M, ...)")
      .output("output", "shape and dtype of old_tensor")
      .infer(infer_index_copy)
      .any_device()
      .waits_on_gpu()
      .cpu(run_index_copy)
      .inplace(0, 0)
      .writes_input(2)
      .may_raise()
      .gradient(index_copy_gradient, Saves::of({1}))
      .sample(sample)
      .sample(inner);
  ops.declare<IndexCopyParams>("_backward_index_copy")
      .doc("The gradient of index_copy to new_tensor: zeros for slices that a later equal index has overwritten.")
      .input("data", "shape of index_copy's output")
      .input("index_vector", "same as in index_copy")
      .output("output", "shape of new_tensor, dtype of data")
      .infer(infer_gather_last)
      .any_device()
      .waits_on_gpu()
      .cpu(run_gather_last)
      .may_raise()
      .internal()
      .gradient(gather_last_gradient, Saves::of({1}))
      .sample({{5, 3}, {4}}, {}, 0.0, 3.4)
      .sample({{2, 4, 3}, {3}}, {{"axis", "1"}}, 0.0, 3.4);
  ops.declare<IndexArrayParams>("_contrib_index_array")
      .doc("The index of every element of data.")
      .input("data", "defines the sizes only")
      .names_its_input()
      .output("output", "shape of data followed by the number of axes; int64")
      .infer([](const IndexArrayParams& p, InferContext& c) {
        c.set_out_dtype(0, DType::kInt64);
        if (!c.in_shape(0).rank_known()) return;
        Shape out = c.in_shape(0);
        out.push_back(axes_of(p, out.ndim()).ndim());
        c.set_out_shape(0, out);
      })
      .any_device_when([](const IndexArrayParams& p, const LinkContext&) { return !p.axes || p.axes->ndim() <= 16; })
      .cpu(run_index_array)
      .gradient(kNotDifferentiable)
      .sample({{2, 3}}, {})
      .sample({{2, 3, 2}}, {{"axes", "(2, 0)"}});
}

}  // namespace hybridnet::ops
