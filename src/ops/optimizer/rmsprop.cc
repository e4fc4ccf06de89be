// RMSProp: plain (Tieleman and Hinton, 2012) and centered (Graves, arXiv 1308.0850, eq. 38-45).
#include <cmath>

#include "hybridnet/op.h"
#include "kernels/functors/update_adaptive.h"
#include "ops/optimizer/declare_update.h"

namespace hybridnet::ops {
namespace {

using kernels::CenteredParams, kernels::CenteredRule, kernels::RmsPropParams, kernels::RmsPropRule;

template <typename P, typename S>
void describe_rmsprop(S& schema) {
  describe_lr<P>(schema);
  schema.field("gamma1", &P::gamma1).default_value(0.95).doc("Decay rate of the running means.");
}

template <typename P, typename S>
void describe_tail(S& schema) {
  schema.field("epsilon", &P::epsilon).default_value(1e-8).doc("Added under the root, against division by zero.");
  describe_wd<P>(schema);
  describe_rescale_clip<P>(schema);
  schema.field("clip_weights", &P::clip_weights)
      .default_value(-1.0)
      .doc("Weights are clipped to [-clip_weights, clip_weights]; negative: not clipped.");
}

}  // namespace
}  // namespace hybridnet::ops

namespace hybridnet::kernels {

void RmsPropParams::describe(ParamSchema<RmsPropParams>& schema) {
  ops::describe_rmsprop<RmsPropParams>(schema);
  ops::describe_tail<RmsPropParams>(schema);
}

void CenteredParams::describe(ParamSchema<CenteredParams>& schema) {
  ops::describe_rmsprop<CenteredParams>(schema);
  schema.field("gamma2", &CenteredParams::gamma2).default_value(0.9).doc("Factor of the previous step.");
  ops::describe_tail<CenteredParams>(schema);
}

}  // namespace hybridnet::kernels

namespace hybridnet::ops {

void register_rmsprop(OpRegistry& ops) {
  // In random states the square of the mean may exceed the mean of squares; epsilon = 1 keeps the argument of the root
  // positive.
  Sample centered;
  centered.inputs = {{3, 4}, {3, 4}, {3, 4}, {3, 4}, {3, 4}};
  centered.attrs = {{"lr", "0.1"}, {"wd", "0.01"}, {"clip_weights", "1.5"}, {"epsilon", "1"}};
  centered.low = 0.1;
  centered.high = 0.9;
  declare_update<RmsPropRule, RmsPropParams>(ops, "rmsprop_update", {"n"})
      .doc(
          "g = clip(rescale_grad * grad + wd * weight); n is a running mean of g * g; weight -= lr * g / sqrt(n + "
          "epsilon), then clipped to clip_weights.")
      .sample({{3, 4}, {3, 4}, {3, 4}}, {{"lr", "0.1"}, {"wd", "0.01"}}, 0.1, 2.0)
      .sample({{5}, {5}, {5}}, {{"lr", "0.1"}, {"clip_gradient", "0.5"}, {"clip_weights", "1"}, {"epsilon", "0.1"}},
              0.1, 2.0);
  declare_update<CenteredRule, CenteredParams>(ops, "rmspropalex_update", {"n", "g", "delta"})
      .doc(
          "rmsprop_update with momentum and the variance n - g * g, where g is a running mean of the gradient: delta = "
          "gamma2 * delta - lr * gradient / sqrt(n - g * g + epsilon); weight += delta.")
      .sample(centered);
}

}  // namespace hybridnet::ops
