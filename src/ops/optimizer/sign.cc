// Steps by the sign of the gradient (Bernstein et al., arXiv 1802.04434).
#include "hybridnet/op.h"
#include "kernels/functors/update_sgd.h"
#include "ops/optimizer/declare_update.h"

namespace hybridnet::kernels {

void SignSgdParams::describe(ParamSchema<SignSgdParams>& schema) {
  ops::describe_lr<SignSgdParams>(schema);
  ops::describe_wd<SignSgdParams>(schema);
  ops::describe_rescale_clip<SignSgdParams>(schema);
}

void SignumParams::describe(ParamSchema<SignumParams>& schema) {
  ops::describe_lr<SignumParams>(schema);
  schema.field("momentum", &SignumParams::momentum).default_value(0.0).doc("Decay rate of the mean of gradients.");
  ops::describe_wd<SignumParams>(schema);
  ops::describe_rescale_clip<SignumParams>(schema);
  schema.field("wd_lh", &SignumParams::wd_lh).default_value(0.0).doc("Weight decay applied after the sign.");
}

}  // namespace hybridnet::kernels

namespace hybridnet::ops {
namespace {

using kernels::SignSgdParams, kernels::SignSgdRule, kernels::SignumParams, kernels::SignumRule;

}  // namespace

void register_sign(OpRegistry& ops) {
  declare_update<SignSgdRule, SignSgdParams>(ops, "signsgd_update", {})
      .doc("weight = (1 - lr * wd) * weight - lr * sign(grad)")
      .sample({{3, 4}, {3, 4}}, {{"lr", "0.1"}, {"wd", "0.01"}});
  declare_update<SignumRule, SignumParams>(ops, "signum_update", {"mom"})
      .doc(
          "mom = momentum * mom - (1 - momentum) * (clip(rescale_grad * grad) + wd * weight); weight = (1 - lr * "
          "wd_lh) * weight + lr * "
          "sign(mom)")
      .sample({{3, 4}, {3, 4}, {3, 4}}, {{"lr", "0.1"}, {"wd", "0.01"}, {"momentum", "0.9"}, {"wd_lh", "0.1"}})
      .sample({{5}, {5}, {5}}, {{"lr", "0.1"}, {"clip_gradient", "0.5"}});
}

}  // namespace hybridnet::ops
