// Adam (Kingma and Ba, 2015). The caller folds the bias correction into lr.
#include <cmath>

#include "hybridnet/op.h"
#include "kernels/functors/update_adam.h"
#include "ops/optimizer/declare_update.h"

namespace hybridnet::ops {
namespace {

using kernels::AdamParams, kernels::AdamRule;

template <typename P, typename S>
void describe_betas(S& schema) {
  schema.field("beta1", &P::beta1).default_value(0.9).doc("Decay rate of the mean of gradients.");
  schema.field("beta2", &P::beta2).default_value(0.999).doc("Decay rate of the mean of squared gradients.");
  schema.field("epsilon", &P::epsilon).default_value(1e-8).doc("Added to the root, against division by zero.");
}

struct MultiAdamParams {
  std::vector<double> lrs, wds;
  double beta1, beta2, epsilon, rescale_grad, clip_gradient;
  int32_t num_weights;
  static void describe(ParamSchema<MultiAdamParams>& schema) {
    describe_lrs_wds<MultiAdamParams>(schema);
    describe_betas<MultiAdamParams>(schema);
    describe_rescale_clip<MultiAdamParams>(schema);
    describe_num_weights<MultiAdamParams>(schema);
  }
};

}  // namespace
}  // namespace hybridnet::ops

namespace hybridnet::kernels {

void AdamParams::describe(ParamSchema<AdamParams>& schema) {
  ops::describe_lr<AdamParams>(schema);
  ops::describe_betas<AdamParams>(schema);
  ops::describe_wd<AdamParams>(schema);
  ops::describe_rescale_clip<AdamParams>(schema);
  ops::describe_lazy_update<AdamParams>(schema);
}

}  // namespace hybridnet::kernels

namespace hybridnet::ops {

void register_adam(OpRegistry& ops) {
  Sample one;
  one.inputs = {{3, 4}, {3, 4}, {3, 4}, {3, 4}};
  one.attrs = {{"lr", "0.1"}, {"wd", "0.01"}};
  one.low = 0.1;
  Sample clipped = one;
  clipped.attrs = {{"lr", "0.1"}, {"clip_gradient", "0.5"}, {"beta1", "0.8"}, {"epsilon", "0.01"}};
  declare_update<AdamRule, AdamParams>(ops, "adam_update", {"mean", "var"})
      .alias("_sparse_adam_update")
      .doc(
          "g = clip(rescale_grad * grad + wd * weight); mean and var are running means of g and g * g; weight -= lr * "
          "mean / (sqrt(var) + epsilon)")
      .updates_rows_by("_lazy_adam_update")
      .sample(one)
      .sample(clipped);
  declare_lazy_update<AdamRule, AdamParams>(ops, "_lazy_adam_update", {"mean", "var"})
      .doc("adam_update of the rows of the gradient.")
      .sample(lazy_sample(2, {{"lr", "0.1"}, {"wd", "0.01"}}));
  declare_update<AdamRule, AdamParams, true>(ops, "_mp_adam_update", {"mean", "var"})
      .doc("adam_update on a float32 copy of the weight; the weight is the rounded copy.")
      .internal()
      .sample(mixed_sample({{3}, {3}, {3}, {3}, {3}}, {{"lr", "0.1"}}, 2, 5));
  const std::vector<std::pair<std::string, std::string>> attrs = {
      {"lrs", "(0.1, 0.2)"}, {"wds", "(0, 0.1)"}, {"num_weights", "2"}};
  Sample many;
  many.inputs = {{3, 4}, {3, 4}, {3, 4}, {3, 4}, {5}, {5}, {5}, {5}};
  many.attrs = attrs;
  many.low = 0.1;
  declare_multi_update<AdamRule, MultiAdamParams>(ops, "_multi_adam_update")
      .doc("adam_update of several tensors at once.")
      .internal()
      .sample(many);
  declare_multi_update<AdamRule, MultiAdamParams, true>(ops, "_multi_mp_adam_update")
      .doc("adam_update of several tensors at once, on float32 copies of the weights.")
      .internal()
      .sample(mixed_sample({{3}, {3}, {3}, {3}, {3}, {2}, {2}, {2}, {2}, {2}}, attrs, 2, 5));
}

}  // namespace hybridnet::ops
