// _silu and _gelu_tanh: x times a smooth step. Plans use them in place of the operators that compute them in graphs.
//   Elfwing, Uchibe, Doya: Sigmoid-weighted linear units, 2017; Hendrycks, Gimpel: Gaussian error linear units, 2016,
//   section 2 (the form with tanh).
#include "hybridnet/declare.h"
#include "ops/elementwise/declare.h"

namespace hybridnet::ops {
namespace {
using kernels::Pointwise;

constexpr double kSqrtTwoOverPi = 0.79788456080286535588, kCubic = 0.044715;

const OpRef kSigmoid{"sigmoid"}, kTanh{"tanh"}, kSiluGrad{"_backward_silu"}, kGeluTanhGrad{"_backward_gelu_tanh"};

// The second derivatives.
Value silu_second_derivative(const Value& x) {
  const Value s = call(kSigmoid, {x}), slope = s * (1.0 - s);
  return slope * (x * (1.0 - 2.0 * s) + 2.0);
}

// With u(x) = k (x + c x^3) and t = tanh(u), the function is x (1 + t) / 2, and the second derivative is (1 - t^2) (u'
// + x (u'' / 2 - t u'^2)).
Value gelu_tanh_second_derivative(const Value& x) {
  const Value square = x * x, t = call(kTanh, {(x * kSqrtTwoOverPi) * (square * kCubic + 1.0)});
  const Value slope = (square * (3 * kCubic) + 1.0) * kSqrtTwoOverPi;
  const Value half_curvature = x * (3 * kCubic * kSqrtTwoOverPi);
  return (1.0 - t * t) * (slope + x * (half_curvature - t * slope * slope));
}

template <Pointwise kForward, Pointwise kBackward>
void register_gate(OpRegistry& ops, const char* name, const char* type, const char* backward_name,
                   const OpRef& backward, const char* doc, Value (*second_derivative)(const Value&)) {
  auto op = ops.declare(name);
  op.doc(doc).input("data", "floating array of any shape").internal();
  elementwise<kForward>(op, kFloating)
      .gradient(
          [&backward](const NoParams&, const GradientContext& g) -> Values {
            return {call(backward, {g.output_grad(0), g.input(0)})};
          },
          Saves::all_inputs())
      .layer_activation(type)
      .sample({{3, 4}});
  gradient_helper<kBackward>(ops, backward_name, "out_grad times the derivative at data.", "data")
      .gradient(
          [&backward, second_derivative](const NoParams&, const GradientContext& g) -> Values {
            const Value dy = g.output_grad(0), x = g.input(1);
            return {g.wants(0) ? call(backward, {dy, x}) : Value{},
                    g.wants(1) ? dy * g.input(0) * second_derivative(x) : Value{}};
          },
          Saves::all_inputs())
      .sample({{3, 4}, {3, 4}});
}

}  // namespace

void register_smooth_gates(OpRegistry& ops) {
  register_gate<Pointwise::kSilu, Pointwise::kSiluGrad>(ops, "_silu", "silu", "_backward_silu", kSiluGrad,
                                                        "data * sigmoid(data).", silu_second_derivative);
  register_gate<Pointwise::kGeluTanh, Pointwise::kGeluTanhGrad>(
      ops, "_gelu_tanh", "gelu_tanh", "_backward_gelu_tanh", kGeluTanhGrad,
      "data / 2 * (1 + tanh(sqrt(2 / pi) * (data + 0.044715 data^3))).", gelu_tanh_second_derivative);
}

}  // namespace hybridnet::ops
