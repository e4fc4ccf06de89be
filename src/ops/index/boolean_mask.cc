// _contrib_boolean_mask: the slices along an axis whose mask is not zero. Their number depends on the values of the
// mask.

#include "hybridnet/declare.h"
#include "kernels/index/gather.h"
#include "kernels/index/indices.h"
#include "kernels/memory/strided_copy.h"
#include "ops/emit.h"
#include "storage/temporary.h"

namespace hybridnet::ops {
namespace {

struct BooleanMaskParams {
  int32_t axis;
  static void describe(ParamSchema<BooleanMaskParams>& schema) {
    schema.field("axis", &BooleanMaskParams::axis).default_value(0).doc("The axis to select from.");
  }
};

struct BooleanMaskGradParams {
  int32_t axis;
  Tuple shape;
  static void describe(ParamSchema<BooleanMaskGradParams>& schema) {
    schema.field("axis", &BooleanMaskGradParams::axis)
        .default_value(0)
        .at_least(0)
        .doc("Same as in _contrib_boolean_mask.");
    schema.field("shape", &BooleanMaskGradParams::shape).doc("Shape of the output.");
  }
};

Temporary<int64_t> marked(const TensorRef& mask) {
  Temporary<int64_t> rows;
  dispatch_dtype(mask.dtype, [&](auto zero) {
    const auto* values = mask.as<decltype(zero)>();
    for (int64_t i = 0; i < mask.size(); ++i) {
      if (static_cast<double>(values[i]) != 0.0) rows.push_back(i);
    }
  });
  return rows;
}

kernels::RowLayout layout_of(const Shape& shape, int axis) {
  return {shape.size(0, axis), shape[axis], shape.size(axis + 1, shape.ndim())};
}

void infer_boolean_mask(const BooleanMaskParams& p, InferContext& c) {
  c.unify_dtypes({0}, {0});
  const Shape& data = c.in_shape(0);
  if (!data.rank_known()) return;
  const int axis = normalize_axis(p.axis, data.ndim());
  c.set_in_shape(1, Shape({data[axis]}));
  Shape out = data;
  out[axis] = kUnknownDim;
  c.set_out_shape(0, out);
}

void run_boolean_mask(const BooleanMaskParams& p, const KernelArgs& a, const Op::Allocate& allocate) {
  const Shape& data = *a.in[0].shape;
  const int axis = normalize_axis(p.axis, data.ndim());
  if (a.in[1].shape->ndim() != 1 || a.in[1].size() != data[axis]) {
    throw ShapeError({.input = "index",
                      .expected = "shape (" + std::to_string(data[axis]) + ",), one mask value per slice",
                      .given = a.in[1].shape->str()});
  }
  const Temporary<int64_t> rows = marked(a.in[1]);
  Shape shape = data;
  shape[axis] = static_cast<int64_t>(rows.size());
  const TensorRef out = allocate(0, {shape, a.in[0].dtype});
  if (out.size() == 0) return;
  kernels::gather_rows(a.in[0].data, layout_of(data, axis), rows.data(), shape[axis], out.data, dtype_size(out.dtype));
}

void run_boolean_mask_grad(const BooleanMaskGradParams& p, const KernelArgs& a) {
  const Temporary<int64_t> rows = marked(a.in[1]);
  const kernels::RowLayout l = layout_of(p.shape, p.axis);
  const int64_t count = static_cast<int64_t>(rows.size()), bytes = dtype_size(a.out[0].dtype);
  if (a.in[0].size() != l.outer * count * l.inner) {
    throw ShapeError({.input = "output_grad",
                      .expected = std::to_string(count) + " slices, as many as the mask marks",
                      .given = a.in[0].shape->str()});
  }
  kernels::zero_bytes(a.out[0].data, a.out[0].size() * bytes);
  kernels::scatter_rows(a.in[0].data, l, rows.data(), count, a.out[0].data, bytes);
}

}  // namespace

void register_boolean_mask(OpRegistry& ops) {
  const OpRef* const kMask = [] {
    static const OpRef ref{"_contrib_boolean_mask"};
    return &ref;
  }();
  const OpRef* const kGrad = [] {
    static const OpRef ref{"_backward_boolean_mask"};
    return &ref;
  }();
  ops.declare<BooleanMaskParams>("_contrib_boolean_mask")
      .alias("_npi_boolean_mask")
      .doc("The slices of data along an axis whose mask value is not zero.")
      .input("data", "any shape of at least 1 dimension, any dtype")
      .input("index", "mask, one value of any dtype per slice")
      .output("output", "data with as many slices as the mask selects")
      .infer(infer_boolean_mask)
      .dynamic(run_boolean_mask)
      .gradient(
          [kGrad](const BooleanMaskParams& p, const GradientContext& g) {
            const Shape& data = g.input_spec(0).shape;
            if (!g.output_grad(0)) return Values{};
            return Values{call(*kGrad, {g.output_grad(0), g.input(1)},
                               ParamSchema<BooleanMaskGradParams>::box({normalize_axis(p.axis, data.ndim()), data})),
                          Value{}};
          },
          Saves::of({1}))
      .sample({{4, 3}, {4}}, {}, 0.5, 2.0)
      .sample({{2, 3, 2}, {3}}, {{"axis", "1"}}, 0.5, 2.0);
  ops.declare<BooleanMaskGradParams>("_backward_boolean_mask")
      .doc(
          "Zeros with slices of output_grad at the positions where the mask is not zero: the gradient of "
          "_contrib_boolean_mask.")
      .input("output_grad", "as many slices as the mask selects")
      .input("index", "the mask")
      .output("output", "shape given by the parameter")
      .infer([](const BooleanMaskGradParams& p, InferContext& c) {
        c.unify_dtypes({0}, {0});
        c.set_out_shape(0, p.shape);
      })
      .cpu(run_boolean_mask_grad)
      .may_raise()
      .internal()
      .gradient(
          [kMask](const BooleanMaskGradParams& p, const GradientContext& g) {
            if (!g.output_grad(0)) return Values{};
            return Values{call(*kMask, {g.output_grad(0), g.input(1)}, {{"axis", p.axis}}), Value{}};
          },
          Saves::of({1}))
      .sample({{4, 3}, {4}}, {{"shape", "(4, 3)"}}, 0.5, 2.0);
}

}  // namespace hybridnet::ops
