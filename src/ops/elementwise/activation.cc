// Activation, and softrelu and softsign, which only Activation offers.
#include "hybridnet/declare.h"
#include "ops/elementwise/activation_type.h"
#include "ops/elementwise/declare.h"

namespace hybridnet::ops {
namespace {
using kernels::ActivationKind;
using kernels::loops_of;
using kernels::Pointwise;

const OpRef kReluGrad{"_backward_relu"}, kSigmoidGrad{"_backward_sigmoid"}, kTanhGrad{"_backward_tanh"},
    kSoftreluGrad{"_backward_softrelu"}, kSoftsignGrad{"_backward_softsign"}, kSign{"sign"}, kAbs{"abs"},
    kSquare{"square"}, kReciprocal{"reciprocal"};

struct ActivationParams {
  ActivationKind act_type;
  static void describe(ParamSchema<ActivationParams>& schema) {
    describe_act_type(schema).doc("The activation function.");
  }
};

void activation_span(const void* params, DType dtype, const void* const* in, void* out, int64_t n) {
  kernels::apply(loops_of(static_cast<const ActivationParams*>(params)->act_type), dtype, in, out, n);
}

void run_activation(const ActivationParams& p, const KernelArgs& a) {
  const void* in[] = {a.in[0].data};
  kernels::apply_parallel(loops_of(p.act_type), a.in[0].dtype, in, a.out[0].data, a.out[0].size());
}

// Layers have no softsign.
std::optional<LayerActivation> layer_form(const ActivationParams& p) {
  switch (p.act_type) {
    case ActivationKind::kRelu:
      return LayerActivation{"relu"};
    case ActivationKind::kSigmoid:
      return LayerActivation{"sigmoid"};
    case ActivationKind::kTanh:
      return LayerActivation{"tanh"};
    case ActivationKind::kSoftRelu:
      return LayerActivation{"softrelu"};
    default:
      return std::nullopt;
  }
}

// Computed from the output alone, so the input need not be kept.
Values activation_gradient(const ActivationParams& p, const GradientContext& g) {
  const OpRef& helper = p.act_type == ActivationKind::kRelu       ? kReluGrad
                        : p.act_type == ActivationKind::kSigmoid  ? kSigmoidGrad
                        : p.act_type == ActivationKind::kTanh     ? kTanhGrad
                        : p.act_type == ActivationKind::kSoftRelu ? kSoftreluGrad
                                                                  : kSoftsignGrad;
  return {call(helper, {g.output_grad(0), g.output(0)})};
}

void register_helpers(OpRegistry& ops) {
  gradient_helper<Pointwise::kSoftreluGrad>(ops, "_backward_softrelu", "out_grad * (1 - e^-output).", "output")
      .gradient(
          [](const NoParams&, const GradientContext& g) -> Values {
            const Value dy = g.output_grad(0), y = g.input(1);
            Value to_output;
            if (g.wants(1)) {
              const Value product = dy * g.input(0);
              to_output = product - call(kSoftreluGrad, {product, y});
            }
            return {g.wants(0) ? call(kSoftreluGrad, {dy, y}) : Value{}, to_output};
          },
          Saves::all_inputs())
      .sample({{3, 4}, {3, 4}}, {}, 0.1, 2.0);
  gradient_helper<Pointwise::kSoftsignGrad>(ops, "_backward_softsign", "out_grad * (1 - |output|)^2.", "output")
      .gradient(
          [](const NoParams&, const GradientContext& g) -> Values {
            const Value dy = g.output_grad(0), y = g.input(1);
            Value to_output;
            if (g.wants(1)) to_output = dy * g.input(0) * (call(kAbs, {y}) * 2.0 - 2.0) * call(kSign, {y});
            return {g.wants(0) ? call(kSoftsignGrad, {dy, y}) : Value{}, to_output};
          },
          Saves::all_inputs())
      .sample({{3, 4}, {3, 4}}, {}, 0.1, 0.9);
}

}  // namespace

void register_activation(OpRegistry& ops) {
  auto op = ops.declare<ActivationParams>("Activation");
  op.alias("_npx_activation")
      .doc("Applies relu, sigmoid, softrelu (log(1 + e^x)), softsign (x / (1 + |x|)) or tanh.")
      .input("data", "array of any shape")
      .output("out", "shape and dtype of data")
      .infer([](const ActivationParams&, InferContext& c) { infer_elementwise(c); })
      .any_device()
      .cpu(run_activation, kFloating | kIntegers)
      .pointwise(&activation_span)
      .inplace(0, 0)
      .cost(
          [](const ActivationParams& p, auto in, auto out) { return elementwise_cost(loops_of(p.act_type), in, out); })
      .quantized({.op = "_contrib_quantized_act"},
                 [](const ActivationParams& p) { return p.act_type == ActivationKind::kRelu; })
      .gradient(activation_gradient, Saves::all_outputs())
      .clamps([](const ActivationParams& p) {
        return p.act_type == ActivationKind::kRelu ? std::optional(Interval::not_negative()) : std::nullopt;
      })
      .layer_activation(layer_form)
      .amp(AmpType::kFloat, [](const ActivationParams& p) { return p.act_type == ActivationKind::kSoftRelu; });
  for (const char* type : {"relu", "sigmoid", "tanh", "softrelu", "softsign"})
    op.sample({{3, 4}}, {{"act_type", type}});
  unary<Pointwise::kSoftsign>(ops, "softsign", "x / (1 + |x|).")
      .gradient(
          [](const NoParams&, const GradientContext& g) -> Values {
            // Computed from the input: 1 - |output| loses all digits if |x| is large.
            return {g.output_grad(0) * call(kSquare, {call(kReciprocal, {call(kAbs, {g.input(0)}) + 1.0})})};
          },
          Saves::all_inputs())
      .sample({{3, 4}});
  register_helpers(ops);
}

}  // namespace hybridnet::ops
