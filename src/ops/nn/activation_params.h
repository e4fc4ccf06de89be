// The activation of fused operators, and its derivative by their output.
#pragma once

#include "kernels/dnnl/post_ops.h"
#include "ops/emit.h"

namespace hybridnet::ops {

// Parameter fields of an operator with a fused activation; the operator's params derive from it.
struct FusedActivation {
  kernels::ActivationKind act_type = kernels::ActivationKind::kNone;
  double act_alpha = 0, act_beta = 0;

  onednn::Activation kernel() const { return {act_type, static_cast<float>(act_alpha), static_cast<float>(act_beta)}; }

  template <typename P>
  static void describe(ParamSchema<P>& schema) {
    using kernels::ActivationKind;
    schema.field("act_type", static_cast<ActivationKind P::*>(&FusedActivation::act_type))
        .default_value("none")
        .choice("none", ActivationKind::kNone)
        .choice("relu", ActivationKind::kRelu)
        .choice("sigmoid", ActivationKind::kSigmoid)
        .choice("tanh", ActivationKind::kTanh)
        .choice("softrelu", ActivationKind::kSoftRelu)
        .choice("gelu", ActivationKind::kGelu)
        .choice("gelu_tanh", ActivationKind::kGeluTanh)
        .choice("silu", ActivationKind::kSilu)
        .choice("clip", ActivationKind::kClip)
        .choice("elu", ActivationKind::kElu)
        .choice("leaky", ActivationKind::kLeaky)
        .doc("Function applied to the result.");
    schema.field("act_alpha", static_cast<double P::*>(&FusedActivation::act_alpha))
        .default_value(0.0)
        .doc("clip: lower bound; elu, leaky: slope of the negative side.");
    schema.field("act_beta", static_cast<double P::*>(&FusedActivation::act_beta))
        .default_value(0.0)
        .doc("clip: upper bound.");
  }
};

// True if the derivative is a function of the output alone.
bool has_gradient_through_output(kernels::ActivationKind kind);
// d * activation'(x), computed from y = activation(x); for kinds with has_gradient_through_output().
Value gradient_through_output(const FusedActivation& a, const Value& y, const Value& d);
// d * activation'(x), computed from x; for every kind.
Value gradient_through_input(const FusedActivation& a, const Value& x, const Value& d);

// Applies the activation in place to n values of dtype float or double.
void apply_activation(const onednn::Activation& a, float* data, int64_t n);
void apply_activation(const onednn::Activation& a, double* data, int64_t n);

}  // namespace hybridnet::ops
