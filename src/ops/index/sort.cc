// sort, argsort and topk: order along an axis. Equal elements keep their order; NaN counts as the largest.
#include <algorithm>

#include "hybridnet/declare.h"
#include "hybridnet/storage.h"
#include "hybridnet/threads.h"
#include "kernels/device/values_arguments.h"
#include "kernels/index/out_of_range.h"
#include "kernels/index/row_order.h"
#include "kernels/memory/fill.h"
#include "ops/device_launch.h"
#include "ops/emit.h"
#include "ops/index/along_axis.h"

namespace hybridnet::ops {
namespace {

enum class ReturnType : int32_t { kValue, kIndices, kMask, kBoth };

struct SortParams {
  std::optional<int32_t> axis;
  bool is_ascend;
  static void describe(ParamSchema<SortParams>& schema) {
    schema.field("axis", &SortParams::axis).default_value(-1).doc("The axis to sort along; None: data is flattened.");
    schema.field("is_ascend", &SortParams::is_ascend)
        .default_value(true)
        .doc("Whether the smallest elements come first.");
  }
};

struct ArgsortParams {
  std::optional<int32_t> axis;
  bool is_ascend;
  DType dtype;
  static void describe(ParamSchema<ArgsortParams>& schema) {
    schema.field("axis", &ArgsortParams::axis)
        .default_value(-1)
        .doc("The axis to sort along; None: data is flattened.");
    schema.field("is_ascend", &ArgsortParams::is_ascend)
        .default_value(true)
        .doc("Whether the smallest elements come first.");
    schema.field("dtype", &ArgsortParams::dtype).default_value("float32").doc("Dtype of the indices.");
  }
};

struct TopkParams {
  std::optional<int32_t> axis;
  int64_t k;
  ReturnType ret_typ;
  bool is_ascend;
  DType dtype;
  static void describe(ParamSchema<TopkParams>& schema) {
    schema.field("axis", &TopkParams::axis).default_value(-1).doc("The axis to select along; None: data is flattened.");
    schema.field("k", &TopkParams::k).default_value(1).doc("Number of elements; below 1: all elements.");
    schema.field("ret_typ", &TopkParams::ret_typ)
        .choice("value", ReturnType::kValue)
        .choice("indices", ReturnType::kIndices)
        .choice("mask", ReturnType::kMask)
        .choice("both", ReturnType::kBoth)
        .default_value("indices")
        .doc("The outputs: values, their indices, values and indices, or a mask of ones like data.");
    schema.field("is_ascend", &TopkParams::is_ascend)
        .default_value(false)
        .doc("Whether to select the smallest instead of the largest elements.");
    schema.field("dtype", &TopkParams::dtype).default_value("float32").doc("Dtype of the indices.");
  }
};

// data as (outer, rows, inner), sorted along rows.
kernels::RowLayout layout_of(const std::optional<int32_t>& axis_or_none, const Shape& data) {
  if (!axis_or_none) return {1, data.size(), 1};
  const int axis = normalize_axis(*axis_or_none, data.ndim());
  return {data.size(0, axis), data[axis], data.size(axis + 1, data.ndim())};
}

int64_t chosen(int64_t k, int64_t rows) { return k < 1 ? rows : k; }

Shape chosen_shape(const std::optional<int32_t>& axis, int64_t k, const Shape& data) {
  if (!axis) return Shape({data.known() ? chosen(k, data.size()) : k < 1 ? kUnknownDim : k});
  Shape out = data;
  int64_t& size = out[normalize_axis(*axis, data.ndim())];
  if (size >= 0 && k > size) {
    throw ParamError({.input = "k",
                      .expected = "at most the size of the axis, " + std::to_string(size),
                      .given = std::to_string(k),
                      .because = "the data has shape " + data.str()});
  }
  size = chosen(k, size);
  return out;
}

// Calls f(outer * inner position, order) for every row; order[0..k) are positions within the row.
template <typename T, typename F>
void each_ordered_row(const T* data, kernels::RowLayout l, int64_t k, bool ascending, F&& f) {
  parallel_for(l.outer * l.inner, 10.0 * static_cast<double>(l.rows), [&](int64_t begin, int64_t end) {
    kernels::RowOrder order;
    for (int64_t item = begin; item < end; ++item)
      f(item, order.find(data + item / l.inner * l.rows * l.inner + item % l.inner, l.rows, l.inner, k, ascending));
  });
}

// The output index of element `rank` of a sorted row; the output has `count` ranks.
int64_t place(int64_t item, int64_t rank, int64_t count, int64_t inner) {
  return (item / inner * count + rank) * inner + item % inner;
}

void write_indices(const TensorRef& out, int64_t item, const int64_t* order, int64_t count, int64_t inner) {
  dispatch_dtype(out.dtype, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t rank = 0; rank < count; ++rank)
      out.as<T>()[place(item, rank, count, inner)] = static_cast<T>(order[rank]);
  });
}

// Sorts the rows, and writes what `a` asks for of the first a.count of each.
void order_on_device(const TensorRef& data, kernels::RowLayout l, bool ascending, DType index_dtype,
                     device::SortArguments a) {
  const OwnedBlock room(2 * data.size() * 8, device::current()->device());
  a.in = data.data;
  a.order = static_cast<int64_t*>(room.data());
  a.other = a.order + data.size();
  a.items = l.outer * l.inner;
  a.rows = l.rows;
  a.inner = l.inner;
  a.ascending = ascending;
  constexpr int64_t kRun = 256;  // the same in sort.cuh
  const auto launch = [&](const std::string& function, int64_t n) {
    on_device::launch("sort.cuh", "SortArguments", function, n, a);
  };
  launch(on_device::with_dtype("sort_runs", data.dtype), data.size());
  for (a.width = kRun; a.width < l.rows; a.width *= 2) {
    launch(on_device::with_dtype("merge_runs", data.dtype), data.size());
    std::swap(a.order, a.other);
  }
  launch("write_sorted<" + on_device::element_name(data.dtype) + ", " + on_device::element_name(index_dtype) + ">",
         a.items * a.count);
}

// values, positions (int64) and indices (any dtype) may be absent.
void order_rows(const TensorRef& data, kernels::RowLayout l, int64_t count, bool ascending, void* values,
                int64_t* positions, const TensorRef* indices) {
  if (data.size() == 0) return;
  if (device::current()) {
    device::SortArguments a{.count = count, .values = values, .positions = positions};
    if (indices) a.indices = indices->data;
    return order_on_device(data, l, ascending, indices ? indices->dtype : DType::kInt64, a);
  }
  dispatch_dtype(data.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* from = data.as<T>();
    T* to = static_cast<T*>(values);
    each_ordered_row(from, l, count, ascending, [&](int64_t item, const int64_t* order) {
      const T* row = from + item / l.inner * l.rows * l.inner + item % l.inner;
      for (int64_t rank = 0; to && rank < count; ++rank)
        to[place(item, rank, count, l.inner)] = row[order[rank] * l.inner];
      for (int64_t rank = 0; positions && rank < count; ++rank)
        positions[place(item, rank, count, l.inner)] = order[rank];
      if (indices) write_indices(*indices, item, order, count, l.inner);
    });
  });
}

int64_t order_cost(const TensorSpec& data) { return data.shape.size() * 12; }

Values ordered_gradient(const GradientContext& g, const std::optional<int32_t>& axis, int positions) {
  const Shape& data = g.input_spec(0).shape;
  if (!g.output_grad(0)) return {};
  const kernels::RowLayout l = layout_of(axis, data);
  const int64_t slices = l.outer * l.inner;
  const int64_t count = slices == 0 ? 0 : g.output_spec(0).shape.size() / slices;
  return {scatter_along_axis(g.output_grad(0), g.output(positions), l, count, kernels::IndexMode::kClip, data)};
}

bool gives_values(const TopkParams& p) { return p.ret_typ == ReturnType::kValue || p.ret_typ == ReturnType::kBoth; }

// Outputs: value -> values, positions; both -> values, indices, positions; indices, mask -> one.
int topk_outputs(const TopkParams& p) {
  return p.ret_typ == ReturnType::kBoth ? 3 : p.ret_typ == ReturnType::kValue ? 2 : 1;
}
int topk_visible(const TopkParams& p) { return p.ret_typ == ReturnType::kBoth ? 2 : 1; }

void infer_topk(const TopkParams& p, InferContext& c) {
  if (p.ret_typ == ReturnType::kMask) {
    c.unify_dtypes();
    c.unify_shapes();
    if (c.in_shape(0).known()) chosen_shape(p.axis, p.k, c.in_shape(0));  // checks k
    return;
  }
  if (gives_values(p)) c.unify_dtypes({0}, {0});
  if (p.ret_typ != ReturnType::kValue) c.set_out_dtype(gives_values(p) ? 1 : 0, p.dtype);
  if (gives_values(p)) c.set_out_dtype(topk_outputs(p) - 1, DType::kInt64);
  if (!c.in_shape(0).rank_known()) return;
  const Shape out = chosen_shape(p.axis, p.k, c.in_shape(0));
  for (int i = 0; i < c.num_out(); ++i) c.set_out_shape(i, out);
}

void run_topk_mask(const TopkParams& p, const KernelArgs& a, kernels::RowLayout l, int64_t count) {
  kernels::fill(a.out[0], 0.0);
  if (a.in[0].size() == 0) return;
  if (device::current())
    return order_on_device(a.in[0], l, p.is_ascend, DType::kInt64, {.count = count, .mask = a.out[0].data});
  dispatch_dtype(a.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    T* to = a.out[0].as<T>();
    each_ordered_row(a.in[0].as<T>(), l, count, p.is_ascend, [&](int64_t item, const int64_t* order) {
      for (int64_t rank = 0; rank < count; ++rank) {
        to[place(item, order[rank], l.rows, l.inner)] = static_cast<T>(1.0f);
      }
    });
  });
}

constexpr const char* kWiderIndices = "pass dtype='int32' or 'int64'";

void run_topk(const TopkParams& p, const KernelArgs& a) {
  const kernels::RowLayout l = layout_of(p.axis, *a.in[0].shape);
  const int64_t count = std::min(chosen(p.k, l.rows), l.rows);
  if (p.ret_typ == ReturnType::kMask) return run_topk_mask(p, a, l, count);
  const TensorRef* indices = p.ret_typ == ReturnType::kIndices ? &a.out[0]
                             : p.ret_typ == ReturnType::kBoth  ? &a.out[1]
                                                               : nullptr;
  if (indices && indices->data == nullptr) indices = nullptr;
  if (indices) kernels::report_inexact_positions("topk", indices->dtype, l.rows - 1, kWiderIndices);
  int64_t* positions = gives_values(p) ? a.out.back().as<int64_t>() : nullptr;
  order_rows(a.in[0], l, count, p.is_ascend, gives_values(p) ? a.out[0].data : nullptr, positions, indices);
}

}  // namespace

void register_sort(OpRegistry& ops) {
  ops.declare<SortParams>("sort")
      .alias("_npi_sort")
      .doc("data sorted along an axis.")
      .input("data", "any shape, any dtype")
      .output("output", "shape of data; flat without axis")
      .output("positions", "positions of the elements in data, int64")
      .visible_outputs(1)
      .infer([](const SortParams& p, InferContext& c) {
        c.unify_dtypes({0}, {0});
        c.set_out_dtype(1, DType::kInt64);
        if (!c.in_shape(0).rank_known()) return;
        for (int i = 0; i < 2; ++i) c.set_out_shape(i, chosen_shape(p.axis, 0, c.in_shape(0)));
      })
      .any_device()
      .cpu([](const SortParams& p, const KernelArgs& a) {
        const kernels::RowLayout l = layout_of(p.axis, *a.in[0].shape);
        order_rows(a.in[0], l, l.rows, p.is_ascend, a.out[0].data, a.out[1].as<int64_t>(), nullptr);
      })
      .skips_unwanted_outputs()
      .cost([](const SortParams&, auto in, auto) { return order_cost(in[0]); })
      .gradient([](const SortParams& p, const GradientContext& g) { return ordered_gradient(g, p.axis, 1); },
                Saves::of({}, {1}))
      .output_names(OutputNames::kNumberedSeveral)
      .sample({{3, 4}}, {})
      .sample({{3, 4}}, {{"axis", "0"}, {"is_ascend", "False"}})
      .sample({{3, 4}}, {{"axis", "None"}});
  ops.declare<ArgsortParams>("argsort")
      .alias("_npi_argsort")
      .doc("The indices that sort data along an axis.")
      .input("data", "any shape, any dtype")
      .output("output", "shape of data; flat without axis")
      .infer([](const ArgsortParams& p, InferContext& c) {
        c.set_out_dtype(0, p.dtype);
        if (c.in_shape(0).rank_known()) c.set_out_shape(0, chosen_shape(p.axis, 0, c.in_shape(0)));
      })
      .any_device()
      .cpu([](const ArgsortParams& p, const KernelArgs& a) {
        const kernels::RowLayout l = layout_of(p.axis, *a.in[0].shape);
        kernels::report_inexact_positions("argsort", a.out[0].dtype, l.rows - 1, kWiderIndices);
        order_rows(a.in[0], l, l.rows, p.is_ascend, nullptr, nullptr, &a.out[0]);
      })
      .cost([](const ArgsortParams&, auto in, auto) { return order_cost(in[0]); })
      .gradient(kNotDifferentiable)
      .amp(AmpType::kFloat)
      .sample({{3, 4}}, {})
      .sample({{3, 4}}, {{"axis", "0"}, {"is_ascend", "False"}, {"dtype", "int32"}})
      .sample({{3, 4}}, {{"axis", "None"}, {"dtype", "int64"}});
  ops.declare<TopkParams>("topk")
      .alias("_npx_topk")
      .doc("The k largest, or smallest, elements along an axis.")
      .input("data", "any shape, any dtype")
      .output("output", "shape of data with k in the axis; shape of data for a mask")
      .output("indices", "with ret_typ both: the indices, dtype given by the parameter")
      .output("positions", "the indices as int64")
      .num_outputs(topk_outputs)
      .num_visible_outputs(topk_visible)
      .infer(infer_topk)
      .any_device()
      .cpu(run_topk)
      .skips_unwanted_outputs()
      .cost([](const TopkParams&, auto in, auto) { return order_cost(in[0]); })
      .gradient(
          [](const TopkParams& p, const GradientContext& g) {
            return gives_values(p) ? ordered_gradient(g, p.axis, topk_outputs(p) - 1) : Values{};
          },
          Saves::of({}, {1, 2}))
      .amp(AmpType::kFloat)
      .output_names(OutputNames::kNumberedSeveral)
      .sample({{3, 5}}, {{"k", "2"}})
      .sample({{3, 5}}, {{"k", "2"}, {"ret_typ", "value"}, {"axis", "0"}})
      .sample({{3, 5}}, {{"k", "3"}, {"ret_typ", "both"}, {"is_ascend", "True"}, {"dtype", "int32"}})
      .sample({{3, 5}}, {{"k", "2"}, {"ret_typ", "mask"}})
      .sample({{3, 5}}, {{"k", "4"}, {"ret_typ", "value"}, {"axis", "None"}});
}

}  // namespace hybridnet::ops
