// Scaling: division by the root of the last axis (attention scores), multiplied gradients.
#include <cmath>

#include "hybridnet/declare.h"
#include "ops/elementwise/scalar.h"

namespace hybridnet::ops {
namespace {
using kernels::Pointwise;

const OpRef kDivSqrtDim{"_contrib_div_sqrt_dim"};

void infer_div_sqrt_dim(const NoParams&, InferContext& c) {
  infer_elementwise(c);
  if (c.in_shape(0).ndim() == 0) {
    throw ShapeError({.input = "data",
                      .expected = "at least one axis",
                      .given = "()",
                      .because = "the last axis gives the divisor"});
  }
}

void run_div_sqrt_dim(const NoParams&, const KernelArgs& a) {
  const TensorRef& data = a.in[0];
  const auto size = static_cast<double>((*data.shape)[data.shape->ndim() - 1]);
  apply_scalar<Pointwise::kDiv, kScalarRight>(std::sqrt(size), data.dtype, data.data, a.out[0].data, data.size(), true);
}

void run_identity(const ScalarParams&, const KernelArgs& a) {
  if (a.out[0].data != a.in[0].data) run_elementwise<Pointwise::kCopy>(a);
}

}  // namespace

void register_scaled(OpRegistry& ops) {
  ops.declare("_contrib_div_sqrt_dim")
      .doc("Divides by the square root of the size of the last axis, for attention scores.")
      .input("data", "floating array of rank 1 or more")
      .output("out", "shape and dtype of data")
      .infer(infer_div_sqrt_dim)
      .any_device()
      .cpu(run_div_sqrt_dim, kFloating)
      .inplace(0, 0)
      .gradient(
          [](const NoParams&, const GradientContext& g) -> Values { return {call(kDivSqrtDim, {g.output_grad(0)})}; },
          Saves::nothing())
      .sample({{2, 3, 4}});
  ops.declare<ScalarParams>("_contrib_gradientmultiplier")
      .alias("_contrib_backward_gradientmultiplier")
      .doc(
          "Copies the input; its gradient is multiplied by scalar. A negative scalar reverses the gradient,\nfor "
          "domain-adversarial training (Ganin and Lempitsky, ICML 2015).")
      .input("data", "array of any shape")
      .output("out", "shape and dtype of data")
      .infer([](const ScalarParams&, InferContext& c) { infer_elementwise(c); })
      .any_device()
      .cpu(run_identity)
      .inplace(0, 0)
      .gradient([](const ScalarParams& p, const GradientContext& g) -> Values { return {g.output_grad(0) * p.scalar}; },
                Saves::nothing())
      .sample({{3, 4}})
      .sample({.inputs = {{3, 4}},
               .attrs = {{"scalar", "-2"}},
               .check_gradient = false,
               .note = "not the derivative, by definition"});
}

}  // namespace hybridnet::ops
