// NumPy's indexing with arrays: x[..., i, j, ...] for index arrays on consecutive axes, read and write.

#include <optional>

#include "device/stream.h"
#include "hybridnet/declare.h"
#include "hybridnet/storage.h"
#include "kernels/index/gather.h"
#include "kernels/index/indices.h"
#include "kernels/memory/strided_copy.h"
#include "ops/emit.h"
#include "ops/shape/reshape_codes.h"

namespace hybridnet::ops {
namespace {

struct AdvancedIndexParams {
  int32_t num_args, axis;
  static void describe(ParamSchema<AdvancedIndexParams>& schema) {
    schema.field("num_args", &AdvancedIndexParams::num_args).at_least(2).doc("Number of inputs.");
    schema.field("axis", &AdvancedIndexParams::axis)
        .default_value(0)
        .at_least(0)
        .doc("The axis of the first index array.");
  }
};

struct AdvancedIndexGradParams {
  int32_t num_args, axis;
  Tuple shape;
  static void describe(ParamSchema<AdvancedIndexGradParams>& schema) {
    schema.field("num_args", &AdvancedIndexGradParams::num_args).at_least(2).doc("Number of inputs.");
    schema.field("axis", &AdvancedIndexGradParams::axis)
        .default_value(0)
        .at_least(0)
        .doc("The axis of the first index array.");
    schema.field("shape", &AdvancedIndexGradParams::shape).doc("Shape of the output.");
  }
};

[[noreturn]] void do_not_broadcast(const Shape& a, const Shape& b) {
  throw ShapeError(
      {.input = "indices", .expected = "shapes that broadcast together", .given = a.str() + " and " + b.str()});
}

Shape broadcast(const Shape& a, const Shape& b) {
  if (!a.rank_known() || !b.rank_known()) return Shape();
  Shape out = a.ndim() >= b.ndim() ? a : b;
  const Shape& other = a.ndim() >= b.ndim() ? b : a;
  const int lead = out.ndim() - other.ndim();
  for (int i = 0; i < other.ndim(); ++i) {
    int64_t& size = out[lead + i];
    if (size == other[i] || other[i] == 1) continue;
    if (size == 1 || size < 0)
      size = other[i];
    else if (other[i] >= 0)
      do_not_broadcast(a, b);
  }
  return out;
}

void check_axes(const Shape& data, int axis, int arrays) {
  if (axis + arrays <= data.ndim()) return;
  throw IndexError({.input = "indices",
                    .expected = "at most " + std::to_string(data.ndim()) + " indices",
                    .given = std::to_string(axis + arrays),
                    .because = "the array has shape " + data.str()});
}

// The axes before the indexed ones, the indices' common shape, the axes after.
Shape indexed_shape(const Shape& data, int axis, int arrays, const Shape& common) {
  check_axes(data, axis, arrays);
  Shape out = Shape::scalar();
  for (int i = 0; i < axis; ++i) out.push_back(data[i]);
  for (int64_t size : common) out.push_back(size);
  for (int i = axis + arrays; i < data.ndim(); ++i) out.push_back(data[i]);
  return out;
}

// Common shape of the inputs from `first` on; unknown if one of them is.
Shape common_shape(const InferContext& c, int first) {
  Shape common = c.in_shape(first);
  for (int i = first + 1; i < c.num_in(); ++i) common = broadcast(common, c.in_shape(i));
  return common;
}

// The index arrays, broadcast together, as row numbers of the data's indexed axes merged into one.
class IndexedRows {
 public:
  IndexedRows(std::span<const TensorRef> arrays, int axis, const Shape& data) : rows_(count_of(arrays)) {
    const int last = axis + static_cast<int>(arrays.size());
    layout = {data.size(0, axis), data.size(axis, last), data.size(last, data.ndim())};
    kernels::zero_bytes(rows_.data(), rows_.size() * static_cast<int64_t>(sizeof(int64_t)));
    for (size_t k = 0; k < arrays.size(); ++k) {
      const int64_t size = data[axis + static_cast<int>(k)];
      kernels::Indices ids(arrays[k]);
      ids.resolve(kernels::IndexMode::kRaise, size);
      add(ids, *arrays[k].shape, size);
    }
  }
  const int64_t* data() const { return rows_.data(); }
  int64_t size() const { return rows_.size(); }
  kernels::RowLayout layout;

 private:
  int64_t count_of(std::span<const TensorRef> arrays) {
    common_ = *arrays[0].shape;
    for (const TensorRef& a : arrays.subspan(1)) common_ = broadcast(common_, *a.shape);
    return common_.size();
  }
  void add(const kernels::Indices& ids, const Shape& shape, int64_t size) {
    if (shape == common_) return rows_.merge(ids.data(), size);
    kernels::Indices spread(rows_.size());
    const kernels::Strides from(shape), to(common_);
    kernels::StridedCopy copy;
    const int lead = common_.ndim() - shape.ndim();
    for (int i = 0; i < common_.ndim(); ++i) {
      const bool repeated = i < lead || shape[i - lead] == 1;
      copy.add_axis(common_[i], repeated ? 0 : from[i - lead], to[i]);
    }
    copy.run(ids.data(), spread.data(), sizeof(int64_t));
    rows_.merge(spread.data(), size);
  }
  Shape common_;
  kernels::Indices rows_;
};

void infer_get(const AdvancedIndexParams& p, InferContext& c) {
  c.unify_dtypes({0}, {0});
  const Shape common = common_shape(c, 1);
  if (c.in_shape(0).rank_known() && common.rank_known()) {
    c.set_out_shape(0, indexed_shape(c.in_shape(0), p.axis, c.num_in() - 1, common));
  }
}

void run_get(const AdvancedIndexParams& p, const KernelArgs& a) {
  const IndexedRows rows(a.in.subspan(1), p.axis, *a.in[0].shape);
  kernels::gather_rows(a.in[0].data, rows.layout, rows.data(), rows.size(), a.out[0].data, dtype_size(a.in[0].dtype));
}

const OpRef kGet{"_advanced_index_get"}, kGrad{"_backward_advanced_index"}, kSet{"_advanced_index_set"},
    kGetLast{"_backward_advanced_index_set"};

Value get(const Value& data, const GradientContext& g, int first, int axis, const OpRef& op = kGet) {
  Values inputs{data};
  for (int i = first; i < g.num_inputs(); ++i) inputs.push_back(g.input(i));
  return call_all(op, inputs, {{"num_args", static_cast<int64_t>(inputs.size())}, {"axis", axis}})[0];
}

Values get_gradient(const AdvancedIndexParams& p, const GradientContext& g) {
  if (!g.output_grad(0)) return {};
  Values inputs{g.output_grad(0)};
  for (int i = 1; i < g.num_inputs(); ++i) inputs.push_back(g.input(i));
  return {call_all(kGrad, inputs,
                   ParamSchema<AdvancedIndexGradParams>::box({p.num_args, p.axis, g.input_spec(0).shape}))[0]};
}

void infer_set(const AdvancedIndexParams& p, InferContext& c) {
  c.unify_dtypes({0, 1}, {0});
  c.set_out_shape(0, c.in_shape(0));
  c.set_in_shape(0, c.out_shape(0));
  const Shape common = common_shape(c, 2);
  const Shape& value = c.in_shape(1);
  if (!c.in_shape(0).known() || !common.known() || !value.known()) return;
  const Shape target = indexed_shape(c.in_shape(0), p.axis, c.num_in() - 2, common);
  bool fits = value.ndim() <= target.ndim();
  for (int i = 0; fits && i < value.ndim(); ++i) {
    const int64_t size = target[target.ndim() - value.ndim() + i];
    fits = value[i] == size || value[i] == 1;
  }
  if (!fits) {
    throw ShapeError(
        {.input = "value", .expected = "a shape that broadcasts to " + target.str(), .given = value.str()});
  }
}

void run_set(const AdvancedIndexParams& p, const KernelArgs& a) {
  copy_first_input(a);
  const Shape& data = *a.in[0].shape;
  const Shape& value = *a.in[1].shape;
  const IndexedRows rows(a.in.subspan(2), p.axis, data);
  const int64_t bytes = dtype_size(a.in[0].dtype);
  Shape common = *a.in[2].shape;
  for (size_t i = 3; i < a.in.size(); ++i) common = broadcast(common, *a.in[i].shape);
  const Shape target = indexed_shape(data, p.axis, static_cast<int>(a.in.size()) - 2, common);
  if (target.size() == 0) return;
  const void* values = a.in[1].data;
  std::optional<OwnedBlock> spread;
  if (!(value == target)) {
    const device::Stream* const stream = device::current();
    spread.emplace(target.size() * bytes, stream ? stream->device() : Device{});
    const kernels::Strides from(value), to(target);
    kernels::StridedCopy copy;
    const int lead = target.ndim() - value.ndim();
    for (int i = 0; i < target.ndim(); ++i) {
      copy.add_axis(target[i], i < lead || value[i - lead] == 1 ? 0 : from[i - lead], to[i]);
    }
    copy.run(values, spread->data(), bytes);
    values = spread->data();
  }
  kernels::scatter_rows(values, rows.layout, rows.data(), rows.size(), a.out[0].data, bytes);
}

Values set_gradient(const AdvancedIndexParams& p, const GradientContext& g) {
  const Value out = g.output_grad(0);
  if (!out) return {};
  Values grads(static_cast<size_t>(g.num_inputs()));
  if (g.wants(0)) {
    Values inputs{out, zeros(Shape({1}), g.input_spec(0).dtype)};
    for (int i = 2; i < g.num_inputs(); ++i) inputs.push_back(g.input(i));
    grads[0] = call_all(kSet, inputs, {{"num_args", g.num_inputs()}, {"axis", p.axis}})[0];
  }
  if (g.wants(1)) grads[1] = sum_to(get(out, g, 2, p.axis, kGetLast), g.input_spec(1).shape);
  return grads;
}

void run_get_last(const AdvancedIndexParams& p, const KernelArgs& a) {
  const IndexedRows rows(a.in.subspan(1), p.axis, *a.in[0].shape);
  kernels::gather_last_rows(a.in[0].data, rows.layout, rows.data(), rows.size(), a.out[0].data,
                            dtype_size(a.in[0].dtype));
}

Values get_last_gradient(const AdvancedIndexParams& p, const GradientContext& g) {
  if (!g.output_grad(0)) return {};
  const TensorSpec& data = g.input_spec(0);
  Values inputs{zeros(data.shape, data.dtype), g.output_grad(0)};
  for (int i = 1; i < g.num_inputs(); ++i) inputs.push_back(g.input(i));
  return call_all(kSet, inputs, {{"num_args", static_cast<int64_t>(inputs.size())}, {"axis", p.axis}});
}

}  // namespace

void register_advanced_index(OpRegistry& ops) {
  ops.declare<AdvancedIndexParams>("_advanced_index_get")
      .doc("data[..., i, j, ...] with index arrays on consecutive axes, broadcast together by NumPy's rules.")
      .variadic_input("data", "num_args",
                      "the array, then one array of integers per indexed axis; negative ones count from the end")
      .output("output", "the axes before, the common shape of the index arrays, the axes after")
      .infer(infer_get)
      .any_device()
      .waits_on_gpu()
      .cpu(run_get)
      .may_raise()
      .internal()
      .allowed_in_files()
      .gradient(get_gradient, Saves::all_inputs())
      .sample({{2, 3, 4}, {2, 1}, {3}}, {{"num_args", "3"}, {"axis", "0"}}, 0.0, 1.4)
      .sample({{2, 3, 4}, {5}}, {{"num_args", "2"}, {"axis", "1"}}, 0.0, 2.4);
  ops.declare<AdvancedIndexGradParams>("_backward_advanced_index")
      .doc("Adds slices to zeros at the positions of index arrays: the gradient of _advanced_index_get.")
      .variadic_input("data", "num_args", "the output's gradient, then the index arrays")
      .output("output", "shape given by the parameter")
      .infer([](const AdvancedIndexGradParams& p, InferContext& c) {
        c.unify_dtypes({0}, {0});
        c.set_out_shape(0, p.shape);
      })
      .any_device()
      .waits_on_gpu()
      .cpu([](const AdvancedIndexGradParams& p, const KernelArgs& a) {
        const IndexedRows rows(a.in.subspan(1), p.axis, p.shape);
        kernels::scatter_add_rows(a.in[0], rows.layout, rows.data(), rows.size(), a.out[0]);
      })
      .may_raise()
      .internal()
      .gradient(
          [](const AdvancedIndexGradParams& p, const GradientContext& g) {
            if (!g.output_grad(0)) return Values{};
            return Values{get(g.output_grad(0), g, 1, p.axis)};
          },
          Saves::all_inputs())
      .sample({{2, 5, 4}, {5}}, {{"num_args", "2"}, {"axis", "1"}, {"shape", "(2, 3, 4)"}}, 0.0, 2.4);
  ops.declare<AdvancedIndexParams>("_advanced_index_set")
      .doc("data after data[..., i, j, ...] = value; if indices repeat, the last value is kept.")
      .variadic_input("data", "num_args",
                      "the array, the value (broadcast), then one array of integers per indexed axis")
      .output("output", "shape and dtype of data")
      .infer(infer_set)
      .any_device()
      .waits_on_gpu()
      .cpu(run_set)
      .inplace(0, 0)
      .writes_input(1)
      .may_raise()
      .internal()
      .allowed_in_files()
      .gradient(set_gradient, Saves::all_inputs())
      .sample({{2, 3, 4}, {4}, {1}, {1}}, {{"num_args", "4"}, {"axis", "0"}}, 0.0, 1.4)
      .sample({{2, 3, 4}, {2, 1, 1}, {1}}, {{"num_args", "3"}, {"axis", "1"}}, 0.0, 2.4);
  ops.declare<AdvancedIndexParams>("_backward_advanced_index_set")
      .doc("The gradient of _advanced_index_set to value: zeros for slices that later equal indices have overwritten.")
      .variadic_input("data", "num_args", "the output's gradient, then the index arrays")
      .output("output", "the axes before, the common shape of the index arrays, the axes after")
      .infer(infer_get)
      .any_device()
      .waits_on_gpu()
      .cpu(run_get_last)
      .may_raise()
      .internal()
      .gradient(get_last_gradient, Saves::all_inputs())
      .sample({{2, 3, 4}, {2, 1}, {3}}, {{"num_args", "3"}, {"axis", "0"}}, 0.0, 1.4)
      .sample({{2, 3, 4}, {5}}, {{"num_args", "2"}, {"axis", "1"}}, 0.0, 2.4);
}

}  // namespace hybridnet::ops
