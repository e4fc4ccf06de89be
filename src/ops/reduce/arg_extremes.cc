// argmax and argmin.
#include <algorithm>

#include "hybridnet/declare.h"
#include "kernels/index/out_of_range.h"
#include "kernels/reduce/arg_extreme.h"
#include "ops/reduce/axes.h"

namespace hybridnet::ops {
namespace {
using kernels::Extreme;

struct ArgParams {
  std::optional<int32_t> axis;
  bool keepdims;
  static void describe(ParamSchema<ArgParams>& schema) {
    schema.field("axis", &ArgParams::axis)
        .none_by_default()
        .doc("Axis to search; None: all elements in row-major order.");
    schema.field("keepdims", &ArgParams::keepdims).default_value(false).doc("Keep reduced axes with size 1.");
  }
};

// nullopt: all elements. A scalar is treated as a vector of one element, which follows NumPy.
std::optional<int> searched_axis(const ArgParams& p, int ndim) {
  if (!p.axis) return std::nullopt;
  const int axis = normalize_axis(*p.axis, std::max(ndim, 1));
  return ndim == 0 ? std::nullopt : std::optional(axis);
}

uint32_t searched_axes(const ArgParams& p, int ndim) {
  const std::optional<int> axis = searched_axis(p, ndim);
  return axis ? 1u << *axis : (1u << ndim) - 1;
}

void require_elements(const Shape& in, uint32_t axes) {
  if (!in.known() || reduced_count(in, axes) > 0) return;
  throw ShapeError({.input = "data",
                    .expected = "at least one element along the searched axis",
                    .given = in.str(),
                    .because = "no elements have no largest or smallest one"});
}

// MXNet gives positions the dtype of data. One of less than 32 bits holds few positions (bfloat16: up to 256), and the
// others would be rounded or wrap without an error.
DType dtype_of_positions(DType data) { return dtype_size(data) < 4 ? DType::kFloat32 : data; }

void infer_arg(const ArgParams& p, InferContext& c) {
  if (c.in_dtype(0) == DType::kUnknown) c.set_in_dtype(0, c.out_dtype(0));  // MXNet's rule
  if (c.in_dtype(0) != DType::kUnknown) c.set_out_dtype(0, dtype_of_positions(c.in_dtype(0)));
  const Shape& in = c.in_shape(0);
  if (!in.rank_known()) return;
  const uint32_t axes = searched_axes(p, in.ndim());
  c.set_out_shape(0, reduced_shape(in, axes, p.keepdims));
  require_elements(in, axes);
}

void search(Extreme extreme, const ArgParams& p, const KernelArgs& a, const char* op) {
  const Shape& shape = *a.in[0].shape;
  int64_t outer = 1, length = shape.size(), inner = 1;
  if (const std::optional<int> axis = searched_axis(p, shape.ndim())) {
    outer = shape.size(0, *axis);
    length = shape[*axis];
    inner = shape.size(*axis + 1, shape.ndim());
  }
  kernels::report_inexact_positions(op, a.out[0].dtype, length - 1,
                                    "search another axis, or use mx.np, which gives int64");
  kernels::arg_extreme(extreme, a.in[0].dtype, a.in[0].data, outer, length, inner, a.out[0].dtype, a.out[0].data);
}

// NumPy's inference: positions are int64, and a single position is a scalar.
void infer_numpy_arg(const ArgParams& p, InferContext& c) {
  c.set_out_dtype(0, DType::kInt64);
  const Shape& in = c.in_shape(0);
  if (!in.rank_known()) return;
  const uint32_t axes = searched_axes(p, in.ndim());
  Shape out = kept_shape(in, axes);
  if (!p.keepdims) {
    out = Shape::scalar();
    for (int i = 0; i < in.ndim(); ++i)
      if (!(axes >> i & 1u)) out.push_back(in[i]);
  }
  c.set_out_shape(0, out);
  require_elements(in, axes);
}

template <Extreme E>
void numpy_arg_op(OpRegistry& ops, const char* name, const char* which) {
  ops.declare<ArgParams>(name)
      .doc("Position of the " + std::string(which) +
           " element along an axis: the first of equal elements, the first NaN if there is one.")
      .input("data", "array of any shape with at least one element along the axis")
      .output("out", "int64; the shape without the searched axis, or with size 1 there (keepdims)")
      .infer(infer_numpy_arg)
      .any_device()
      .cpu([](const ArgParams& p, const KernelArgs& a) { search(E, p, a, E == Extreme::kMax ? "argmax" : "argmin"); })
      .gradient(kNotDifferentiable)
      .cost([](const ArgParams&, auto in, auto) { return in[0].shape.size() / 4; })
      .sample({{3, 4}})
      .sample({{2, 3, 4}}, {{"axis", "1"}})
      .sample({{2, 3, 4}}, {{"axis", "-1"}, {"keepdims", "1"}});
}

template <Extreme E>
void arg_op(OpRegistry& ops, const char* name, const char* which) {
  ops.declare<ArgParams>(name)
      .doc("Position of the " + std::string(which) +
           " element along an axis: the first of equal elements, the first NaN if there is one. The result has the "
           "dtype of data, which follows MXNet, but float32 for dtypes of less than 32 bits, which hold few positions. "
           "Positions above 2^24 are rounded in float32, with a warning.")
      .input("data", "array of any shape with at least one element along the axis")
      .output(
          "out",
          "dtype of data, float32 for float16, bfloat16, int8, uint8 and bool; the shape without the searched axis, "
          "or with size 1 there (keepdims)")
      .infer(infer_arg)
      .any_device()
      .cpu([](const ArgParams& p, const KernelArgs& a) { search(E, p, a, E == Extreme::kMax ? "argmax" : "argmin"); })
      .gradient([](const ArgParams&, const GradientContext&) { return Values(1); }, Saves::nothing())
      .cost([](const ArgParams&, auto in, auto) { return in[0].shape.size() / 4; })
      .sample({{3, 4}})
      .sample({{2, 3, 4}}, {{"axis", "1"}})
      .sample({{2, 3, 4}}, {{"axis", "-1"}, {"keepdims", "1"}});
}

}  // namespace

void register_arg_extremes(OpRegistry& ops) {
  arg_op<Extreme::kMax>(ops, "argmax", "largest");
  arg_op<Extreme::kMin>(ops, "argmin", "smallest");
  numpy_arg_op<Extreme::kMax>(ops, "_npi_argmax", "largest");
  numpy_arg_op<Extreme::kMin>(ops, "_npi_argmin", "smallest");
  ops.declare("argmax_channel")
      .doc("argmax along axis 1.")
      .input("data", "array of rank 2 or more, or of rank 1")
      .output("out", "dtype as in argmax, the shape without axis 1")
      .infer([](const NoParams&, InferContext& c) {
        infer_arg({.axis = c.in_shape(0).ndim() == 1 ? 0 : 1, .keepdims = false}, c);
      })
      .any_device()
      .cpu([](const NoParams&, const KernelArgs& a) {
        search(Extreme::kMax, {.axis = a.in[0].shape->ndim() == 1 ? 0 : 1, .keepdims = false}, a, "argmax_channel");
      })
      .gradient([](const NoParams&, const GradientContext&) { return Values(1); }, Saves::nothing())
      .sample({{3, 4}});
}

}  // namespace hybridnet::ops
