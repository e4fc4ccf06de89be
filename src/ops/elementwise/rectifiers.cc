// relu, sigmoid, tanh and their gradients, which need only the output.
#include "hybridnet/op.h"
#include "ops/elementwise/declare.h"

namespace hybridnet::ops {
namespace {
using kernels::Pointwise;

const OpRef kReluGrad{"_backward_relu"}, kSigmoidGrad{"_backward_sigmoid"}, kTanhGrad{"_backward_tanh"};

auto gradient_by_output(const OpRef& helper) {
  return [&helper](const NoParams&, const GradientContext& g) -> Values {
    return {call(helper, {g.output_grad(0), g.output(0)})};
  };
}

}  // namespace

void register_rectifiers(OpRegistry& ops) {
  unary<Pointwise::kRelu>(ops, "relu", "max(x, 0).")
      .alias("_sparse_relu")
      .alias("_npx_relu")
      .quantized({.op = "_contrib_quantized_act", .attrs = {{"act_type", "relu"}}})
      .clamps(Interval::not_negative())
      .layer_activation("relu")
      .gradient(gradient_by_output(kReluGrad), Saves::all_outputs())
      .sparse(SparseForm::kOnValues, SparseGradient::kOnSparse)
      .sample({{3, 4}})
      .sample({Shape{0, 4}});
  gradient_helper<Pointwise::kReluGrad>(ops, "_backward_relu", "out_grad where the output is positive, else 0.",
                                        "output")
      .gradient(
          [](const NoParams&, const GradientContext& g) -> Values {
            return {call(kReluGrad, {g.output_grad(0), g.input(1)}), {}};
          },
          Saves::of({1}))
      .sparse(SparseForm::kProduct)
      .sample({{3, 4}, {3, 4}});

  unary<Pointwise::kSigmoid>(ops, "sigmoid", "1 / (1 + e^-x).")
      .alias("_sparse_sigmoid")
      .alias("_npx_sigmoid")
      .layer_activation("sigmoid")
      .gradient(gradient_by_output(kSigmoidGrad), Saves::all_outputs())
      .sample({{3, 4}});
  gradient_helper<Pointwise::kSigmoidGrad>(ops, "_backward_sigmoid", "out_grad * output * (1 - output).", "output")
      .gradient(
          [](const NoParams&, const GradientContext& g) -> Values {
            const Value dy = g.output_grad(0), y = g.input(1);
            return {g.wants(0) ? call(kSigmoidGrad, {dy, y}) : Value{},
                    g.wants(1) ? dy * g.input(0) * (y * -2.0 + 1.0) : Value{}};
          },
          Saves::all_inputs())
      .sample({{3, 4}, {3, 4}});

  unary<Pointwise::kTanh>(ops, "tanh", "Hyperbolic tangent.")
      .alias("_sparse_tanh")
      .layer_activation("tanh")
      .gradient(gradient_by_output(kTanhGrad), Saves::all_outputs())
      .sample({{3, 4}});
  gradient_helper<Pointwise::kTanhGrad>(ops, "_backward_tanh", "out_grad * (1 - output * output).", "output")
      .gradient(
          [](const NoParams&, const GradientContext& g) -> Values {
            const Value dy = g.output_grad(0), y = g.input(1);
            return {g.wants(0) ? call(kTanhGrad, {dy, y}) : Value{}, g.wants(1) ? dy * g.input(0) * y * -2.0 : Value{}};
          },
          Saves::all_inputs())
      .sample({{3, 4}, {3, 4}});
}

}  // namespace hybridnet::ops
