// gather_nd, scatter_nd and related operators: elements or slices selected by tuples of indices.
#include "device/stream.h"
#include "hybridnet/declare.h"
#include "kernels/index/device_index.h"
#include "kernels/index/gather.h"
#include "kernels/index/indices.h"
#include "kernels/memory/strided_copy.h"
#include "ops/emit.h"
#include "ops/shape/reshape_codes.h"

namespace hybridnet::ops {
namespace {

struct ScatterParams {
  Tuple shape;
  static void describe(ParamSchema<ScatterParams>& schema) {
    schema.field("shape", &ScatterParams::shape).doc("Shape of the output.");
  }
};

// The columns of `indices` (M, ...) are tuples: row m holds the indices of axis m. A slice spans the axes after the
// first M.
struct TupleIndices {
  kernels::Indices rows;      // the slice that each tuple selects
  kernels::RowLayout layout;  // the tensor as slices
  TupleIndices(const TensorRef& indices, const Shape& data) : rows(count_of(indices)) {
    const int depth = static_cast<int>((*indices.shape)[0]);
    layout = {1, data.size(0, depth), data.size(depth, data.ndim())};
    kernels::Indices all(indices);
    kernels::zero_bytes(rows.data(), rows.size() * static_cast<int64_t>(sizeof(int64_t)));
    for (int m = 0; m < depth; ++m) {
      int64_t* one = all.data() + m * rows.size();
      if (!count_from_end(one, data[m])) throw_outside(device::current() ? all.on_host() : std::move(all), m, data[m]);
      rows.merge(one, data[m]);
    }
  }
  static int64_t count_of(const TensorRef& indices) { return indices.shape->size(1, indices.shape->ndim()); }

 private:
  // Adds size to negative indices. False if an index is out of bounds.
  bool count_from_end(int64_t* ids, int64_t size) const {
    if (device::current()) return kernels::on_device::count_from_end(ids, rows.size(), size);
    for (int64_t i = 0; i < rows.size(); ++i) {
      if (ids[i] < -size || ids[i] >= size) return false;
      if (ids[i] < 0) ids[i] += size;
    }
    return true;
  }
  [[noreturn]] void throw_outside(const kernels::Indices& all, int axis, int64_t size) const {
    const int64_t* one = all.data() + axis * rows.size();
    while (*one >= -size && *one < size) ++one;
    throw IndexError({.input = "indices",
                      .expected = "indices in [" + std::to_string(-size) + ", " + std::to_string(size - 1) +
                                  "] for axis " + std::to_string(axis),
                      .given = std::to_string(*one)});
  }
};

// Shape of the gathered slices; unknown until both shapes are known.
Shape gathered_shape(const Shape& data, const Shape& indices) {
  if (!data.rank_known() || !indices.rank_known()) return Shape();
  if (indices.ndim() < 1) {
    throw ShapeError(
        {.input = "indices", .expected = "at least 1 dimension: indices of axis m in row m", .given = indices.str()});
  }
  if (indices[0] < 0) return Shape();
  if (indices[0] > data.ndim()) {
    throw ShapeError({.input = "indices",
                      .expected = "at most " + std::to_string(data.ndim()) + " rows, one per axis of the data",
                      .given = indices.str(),
                      .because = "the data has shape " + data.str()});
  }
  Shape out = Shape::scalar();
  for (int i = 1; i < indices.ndim(); ++i) out.push_back(indices[i]);
  for (int i = static_cast<int>(indices[0]); i < data.ndim(); ++i) out.push_back(data[i]);
  if (out.ndim() == 0 && !is_np_shape()) out.push_back(1);
  return out;
}

const OpRef kGather{"gather_nd"}, kAccumulate{"_backward_gather_nd"}, kScatterSet{"_scatter_set_nd"},
    kScatter{"scatter_nd"}, kGatherLast{"_backward_scatter_nd"};

Value gather(const Value& data, const Value& indices) { return data ? call(kGather, {data, indices}) : data; }
// The gradient of values written at tuples. Of equal tuples the last one was written: the others get zeros.
Value gather_last(const Value& data, const Value& indices) { return data ? call(kGatherLast, {data, indices}) : data; }

void infer_gather(InferContext& c) {
  c.unify_dtypes({0}, {0});
  c.set_out_shape(0, gathered_shape(c.in_shape(0), c.in_shape(1)));
}

void run_gather(const NoParams&, const KernelArgs& a) {
  const TupleIndices ids(a.in[1], *a.in[0].shape);
  kernels::gather_rows(a.in[0].data, ids.layout, ids.rows.data(), ids.rows.size(), a.out[0].data,
                       dtype_size(a.in[0].dtype));
}

void run_gather_last(const NoParams&, const KernelArgs& a) {
  const TupleIndices ids(a.in[1], *a.in[0].shape);
  kernels::gather_last_rows(a.in[0].data, ids.layout, ids.rows.data(), ids.rows.size(), a.out[0].data,
                            dtype_size(a.in[0].dtype));
}

void infer_scatter(const ScatterParams& p, InferContext& c) {
  c.unify_dtypes({0}, {0});
  c.set_out_shape(0, p.shape);
  c.set_in_shape(0, gathered_shape(p.shape, c.in_shape(1)));
}

void infer_scatter_set(const ScatterParams& p, InferContext& c) {
  c.unify_dtypes({0, 1}, {0});
  if (p.shape.ndim() > 0) c.set_in_shape(0, p.shape);
  c.set_out_shape(0, c.in_shape(0));
  c.set_in_shape(0, c.out_shape(0));
  c.set_in_shape(1, gathered_shape(c.in_shape(0), c.in_shape(2)));
}

void scatter_into(const TensorRef& values, const TensorRef& indices, const TensorRef& out) {
  const TupleIndices ids(indices, *out.shape);
  kernels::scatter_rows(values.data, ids.layout, ids.rows.data(), ids.rows.size(), out.data, dtype_size(out.dtype));
}

}  // namespace

void register_gather_nd(OpRegistry& ops) {
  ops.declare("gather_nd")
      .alias("_npi_gather_nd")
      .alias("_npx_gather_nd")
      .doc("Elements or slices of data selected by tuples: out[y...] = data[indices[0, y...], indices[1, y...], ...].")
      .input("data", "any shape, any dtype")
      .input("indices", "shape (M, ...), M at most the dimensions of data; integers, negative ones count from the end")
      .output("output", "shape of indices without its first axis, then the axes of data after the first M")
      .infer([](const NoParams&, InferContext& c) { infer_gather(c); })
      .any_device()
      .waits_on_gpu()
      .cpu(run_gather)
      .may_raise()
      .gradient(
          [](const NoParams&, const GradientContext& g) {
            if (!g.output_grad(0)) return Values{};
            return Values{call(kAccumulate, {g.output_grad(0), g.input(1)},
                               ParamSchema<ScatterParams>::box({g.input_spec(0).shape})),
                          Value{}};
          },
          Saves::of({1}))
      .sample({{2, 3}, {2, 4}}, {}, 0.0, 1.4)
      .sample({{2, 3, 4}, {1, 2, 2}}, {}, 0.0, 1.4);
  ops.declare<ScatterParams>("_backward_gather_nd")
      .allowed_in_files()
      .doc("Adds slices to zeros at the positions of tuples: the gradient of gather_nd.")
      .input("data", "shape of gather_nd's output")
      .input("indices", "same as in gather_nd")
      .output("output", "shape given by the parameter")
      .infer(infer_scatter)
      .any_device()
      .waits_on_gpu()
      .cpu([](const ScatterParams& p, const KernelArgs& a) {
        const TupleIndices ids(a.in[1], p.shape);
        kernels::scatter_add_rows(a.in[0], ids.layout, ids.rows.data(), ids.rows.size(), a.out[0]);
      })
      .may_raise()
      .gradient(
          [](const ScatterParams&, const GradientContext& g) {
            return Values{gather(g.output_grad(0), g.input(1)), Value{}};
          },
          Saves::of({1}))
      .internal()
      .sample({{4}, {2, 4}}, {{"shape", "(2, 3)"}}, 0.0, 1.4);
  ops.declare<ScatterParams>("scatter_nd")
      .doc("Zeros with slices of data at the positions of tuples; if tuples repeat, the last one is kept.")
      .input("data", "shape of indices without its first axis, then the axes of the output after the first M")
      .input("indices", "shape (M, ...); integers, negative ones count from the end")
      .output("output", "shape given by the parameter")
      .infer(infer_scatter)
      .any_device()
      .waits_on_gpu()
      .cpu([](const ScatterParams&, const KernelArgs& a) {
        kernels::zero_bytes(a.out[0].data, a.out[0].size() * dtype_size(a.out[0].dtype));
        scatter_into(a.in[0], a.in[1], a.out[0]);
      })
      .may_raise()
      .gradient(
          [](const ScatterParams&, const GradientContext& g) {
            return Values{gather_last(g.output_grad(0), g.input(1)), Value{}};
          },
          Saves::of({1}))
      .sample({{2, 3}, {1, 2}}, {{"shape", "(4, 3)"}}, 0.0, 3.4);
  ops.declare("_backward_scatter_nd")
      .doc("The gradient of scatter_nd: gather_nd, with zeros for tuples that a later equal tuple has overwritten.")
      .input("data", "shape of scatter_nd's output")
      .input("indices", "same as in scatter_nd")
      .output("output", "shape of indices without its first axis, then the axes of data after the first M")
      .infer([](const NoParams&, InferContext& c) { infer_gather(c); })
      .any_device()
      .waits_on_gpu()
      .cpu(run_gather_last)
      .may_raise()
      .gradient(
          [](const NoParams&, const GradientContext& g) {
            if (!g.output_grad(0)) return Values{};
            return Values{call(kScatter, {g.output_grad(0), g.input(1)},
                               ParamSchema<ScatterParams>::box({g.input_spec(0).shape})),
                          Value{}};
          },
          Saves::of({1}))
      .internal()
      .sample({{2, 3}, {2, 4}}, {}, 0.0, 1.4);
  ops.declare<ScatterParams>("_scatter_set_nd")
      .alias("_npi_scatter_set_nd")
      .doc("lhs with the slices at the positions of tuples replaced by rhs; if tuples repeat, the last one is kept.")
      .input("lhs", "any shape, any dtype")
      .input("rhs", "shape of indices without its first axis, then the axes of lhs after the first M")
      .input("indices", "shape (M, ...); integers, negative ones count from the end")
      .output("output", "shape and dtype of lhs")
      .infer(infer_scatter_set)
      .any_device()
      .waits_on_gpu()
      .cpu([](const ScatterParams&, const KernelArgs& a) {
        copy_first_input(a);
        scatter_into(a.in[1], a.in[2], a.out[0]);
      })
      .inplace(0, 0)
      .writes_input(1)
      .may_raise()
      .gradient(
          [](const ScatterParams& p, const GradientContext& g) {
            const Value out = g.output_grad(0), indices = g.input(2);
            if (!out) return Values{};
            Values grads(3);
            if (g.wants(0)) {
              const TensorSpec& rhs = g.input_spec(1);
              grads[0] =
                  call(kScatterSet, {out, zeros(rhs.shape, rhs.dtype), indices}, ParamSchema<ScatterParams>::box(p));
            }
            if (g.wants(1)) grads[1] = gather_last(out, indices);
            return grads;
          },
          Saves::of({2}))
      .sample({{4, 3}, {3, 3}, {1, 3}}, {{"shape", "(4, 3)"}}, 0.0, 3.4);
}

}  // namespace hybridnet::ops
