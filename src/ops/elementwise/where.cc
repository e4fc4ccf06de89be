// Selection between two arrays.
#include <cstring>

#include "hybridnet/declare.h"
#include "kernels/device/rows_arguments.h"
#include "kernels/elementwise/convert.h"
#include "kernels/elementwise/select.h"
#include "ops/device_launch.h"
#include "ops/elementwise/declare.h"

namespace hybridnet::ops {
namespace {

const OpRef kWhere{"where"};

// True if the condition has one element per slice along the first axis.
bool is_per_row(const Shape& condition, const Shape& x) { return condition.ndim() == 1 && x.ndim() > 1; }

void infer_where(const NoParams&, InferContext& c) {
  c.unify_dtypes({1, 2}, {0});
  for (int i : {1, 2}) {
    c.set_out_shape(0, c.in_shape(i));
  }
  for (int i : {1, 2}) c.set_in_shape(i, c.out_shape(0));
  const Shape& x = c.out_shape(0);
  const Shape& condition = c.in_shape(0);
  if (!x.rank_known()) {
    if (condition.ndim() > 1) {
      c.set_out_shape(0, condition);
      for (int i : {1, 2}) c.set_in_shape(i, condition);
    }
    return;
  }
  if (!condition.rank_known()) return c.set_in_shape(0, x);
  if (!is_per_row(condition, x)) return c.set_in_shape(0, x);
  if (condition[0] == kUnknownDim) return c.set_in_shape(0, Shape{x[0]});
  if (x[0] != kUnknownDim && x[0] != condition[0]) {
    throw ShapeError({.input = "condition",
                      .expected = "shape " + x.str() + " or (" + std::to_string(x[0]) + ",)",
                      .given = condition.str(),
                      .because = "a 1-d condition chooses slices along the first axis of x and y"});
  }
}

void choose_rows_on_device(const KernelArgs& a, int64_t row) {
  const DType dtype = a.out[0].dtype;
  const device::RowChoiceArguments rows{.condition = a.in[0].data,
                                        .x = a.in[1].data,
                                        .y = a.in[2].data,
                                        .out = a.out[0].data,
                                        .n = a.out[0].size(),
                                        .row = row};
  const std::string types =
      device::element_name(a.in[0].dtype) + ", uint" + std::to_string(8 * dtype_size(dtype)) + "_t";
  on_device::launch("rows.cuh", "RowChoiceArguments", on_device::with_type("choose_rows", types), rows.n, rows);
}

void run_where(const NoParams&, const KernelArgs& a) {
  const Shape& x = *a.out[0].shape;
  const int64_t n = x.size(), size = dtype_size(a.out[0].dtype);
  const TensorRef& condition = a.in[0];
  if (!is_per_row(*condition.shape, x)) {
    return kernels::select(condition.dtype, condition.data, size, a.in[1].data, a.in[2].data, a.out[0].data, n);
  }
  if (n == 0) return;
  if (device::current()) return choose_rows_on_device(a, n / x[0]);
  const int64_t rows = x[0], row_bytes = n / rows * size;
  for (int64_t row = 0; row < rows; ++row) {
    bool chosen = false;
    kernels::convert(condition.dtype, static_cast<const char*>(condition.data) + row * dtype_size(condition.dtype),
                     DType::kBool, &chosen, 1);
    std::memcpy(static_cast<char*>(a.out[0].data) + row * row_bytes,
                static_cast<const char*>(a.in[chosen ? 1 : 2].data) + row * row_bytes, static_cast<size_t>(row_bytes));
  }
}

Values where_gradient(const NoParams&, const GradientContext& g) {
  const Value dy = g.output_grad(0), condition = g.input(0);
  const Value zero = zeros_like(dy);
  return {{}, g.wants(1) ? where(condition, dy, zero) : Value{}, g.wants(2) ? where(condition, zero, dy) : Value{}};
}

}  // namespace

void register_where(OpRegistry& ops) {
  ops.declare("where")
      .alias("_sparse_where")
      .doc("Elements of x where the condition is not 0, otherwise of y. The condition has no gradient.")
      .input("condition", "shape of x, or (x.shape[0],) to select whole slices; any dtype")
      .input("x", "array of any shape")
      .input("y", "shape and dtype of x")
      .output("out", "shape and dtype of x")
      .infer(infer_where)
      .any_device()
      .cpu(run_where)
      .inplace(1, 0)
      .inplace(2, 0)
      .gradient(where_gradient, Saves::of({0}))
      .amp(AmpType::kWidest)
      .sample({.inputs = {{3, 4}, {3, 4}, {3, 4}}, .low = -2, .high = 2, .integer_valued = true})
      .sample({.inputs = {{3}, {3, 4}, {3, 4}}, .low = 0, .high = 1, .integer_valued = true})
      .sample(std::vector<Shape>{{0, 4}, {0, 4}, {0, 4}});
}

}  // namespace hybridnet::ops
