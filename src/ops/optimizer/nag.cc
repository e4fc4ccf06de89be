// Nesterov's accelerated gradient.
#include "hybridnet/op.h"
#include "kernels/functors/update_sgd.h"
#include "ops/optimizer/declare_update.h"

namespace hybridnet::kernels {

void NagParams::describe(ParamSchema<NagParams>& schema) {
  ops::describe_lr<NagParams>(schema);
  ops::describe_momentum<NagParams>(schema);
  ops::describe_wd<NagParams>(schema);
  ops::describe_rescale_clip<NagParams>(schema);
}

}  // namespace hybridnet::kernels

namespace hybridnet::ops {
namespace {

using kernels::NagParams, kernels::NagRule;

struct MultiNagParams {
  std::vector<double> lrs, wds;
  double momentum, rescale_grad, clip_gradient;
  int32_t num_weights;
  static void describe(ParamSchema<MultiNagParams>& schema) {
    describe_lrs_wds<MultiNagParams>(schema);
    describe_momentum<MultiNagParams>(schema);
    describe_rescale_clip<MultiNagParams>(schema);
    describe_num_weights<MultiNagParams>(schema);
  }
};

}  // namespace

void register_nag(OpRegistry& ops) {
  const char* formula =
      "mom = momentum * mom - lr * (clip(rescale_grad * grad) + wd * weight); weight changes by mom plus momentum "
      "times the change of mom.";
  declare_update<NagRule, NagParams>(ops, "nag_mom_update", {"mom"})
      .doc(formula)
      .sample({{3, 4}, {3, 4}, {3, 4}}, {{"lr", "0.1"}, {"wd", "0.01"}, {"momentum", "0.9"}});
  declare_update<NagRule, NagParams, true>(ops, "mp_nag_mom_update", {"mom"})
      .doc("nag_mom_update on a float32 copy of the weight; the weight is the rounded copy.")
      .sample(mixed_sample({{3}, {3}, {3}, {3}}, {{"lr", "0.1"}, {"momentum", "0.9"}}, 2, 4));
  const std::vector<std::pair<std::string, std::string>> attrs = {
      {"lrs", "(0.1, 0.2)"}, {"wds", "(0, 0.1)"}, {"momentum", "0.9"}, {"num_weights", "2"}};
  declare_multi_update<NagRule, MultiNagParams>(ops, "_multi_nag_mom_update")
      .doc("nag_mom_update of several tensors at once.")
      .internal()
      .sample({{3, 4}, {3, 4}, {3, 4}, {5}, {5}, {5}}, attrs);
  declare_multi_update<NagRule, MultiNagParams, true>(ops, "_multi_mp_nag_mom_update")
      .doc("mp_nag_mom_update of several tensors at once.")
      .internal()
      .sample(mixed_sample({{3}, {3}, {3}, {3}, {2}, {2}, {2}, {2}}, attrs, 2, 4));
}

}  // namespace hybridnet::ops
