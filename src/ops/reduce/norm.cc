// L1 and L2 norms.
#include "hybridnet/declare.h"
#include "ops/reduce/axes.h"

namespace hybridnet::ops {
namespace {
using kernels::Finish;
using kernels::Reduction;

const OpRef kSign{"sign"}, kEqualScalar{"_equal_scalar"};

struct NormParams {
  int32_t ord;
  std::optional<Tuple> axis;
  std::optional<DType> out_dtype;
  bool keepdims;
  static void describe(ParamSchema<NormParams>& schema) {
    schema.field("ord", &NormParams::ord)
        .default_value(2)
        .range(1, 2)
        .doc("1: sum of magnitudes; 2: root of the sum of squares.");
    schema.field("axis", &NormParams::axis).none_by_default().doc("Axis or axes of the norm; None or (): all.");
    schema.field("out_dtype", &NormParams::out_dtype)
        .none_by_default()
        .doc("Dtype of the output; None: dtype of data.");
    schema.field("keepdims", &NormParams::keepdims).default_value(false).doc("Keep reduced axes with size 1.");
  }
};

void infer_norm(const NormParams& p, InferContext& c) {
  if (p.out_dtype) {
    c.set_out_dtype(0, *p.out_dtype);
  } else {
    c.unify_dtypes();
  }
  const Shape& in = c.in_shape(0);
  if (in.rank_known()) c.set_out_shape(0, reduced_shape(in, reduced_axes(p.axis, false, in.ndim()), p.keepdims));
}

void run_norm(const NormParams& p, const KernelArgs& a) {
  const Shape& shape = *a.in[0].shape;
  kernels::reduce(p.ord == 1 ? Reduction::kSumAbs : Reduction::kSumSquares, p.ord == 1 ? Finish::kNone : Finish::kSqrt,
                  a.in[0].dtype, a.in[0].data, shape, reduced_axes(p.axis, false, shape.ndim()), a.out[0].dtype,
                  a.out[0].data);
}

Values norm_gradient(const NormParams& p, const GradientContext& g) {
  const TensorSpec& in = g.input_spec(0);
  const uint32_t axes = reduced_axes(p.axis, false, in.shape.ndim());
  const Value dy = cast(g.output_grad(0), in.dtype), x = g.input(0);
  if (p.ord == 1) return {spread(dy, in.shape, axes) * call(kSign, {x})};
  // x / norm; 0 for the zero vector, at which the norm has no derivative and 0 is one of its subgradients.
  const Value y = cast(g.output(0), in.dtype);
  const Value safe = y + call(kEqualScalar, {y}, {{"scalar", 0.0}});
  return {spread(dy / safe, in.shape, axes) * x};
}

}  // namespace

void register_norm(OpRegistry& ops) {
  ops.declare<NormParams>("norm")
      .alias("_sparse_norm")
      .doc("L1 or L2 norm over axes.")
      .input("data", "array of any shape")
      .output("out", "the shape without the reduced axes, or with sizes 1 there (keepdims)")
      .infer(infer_norm)
      .any_device()
      .cpu(run_norm)
      .gradient(norm_gradient, Saves::all())
      .amp(AmpType::kFloat)
      .sparse(SparseForm::kNorm)
      .sample({{3, 4}})
      .sample({{3, 4}}, {{"ord", "1"}, {"axis", "1"}})
      .sample({{2, 3, 4}}, {{"axis", "(0, 2)"}, {"keepdims", "1"}});
}

}  // namespace hybridnet::ops
