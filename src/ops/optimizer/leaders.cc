// Follow-the-leader optimizers: FTRL (McMahan et al., 2013) and FTML (Zheng and Kwok, 2017).
#include <cmath>

#include "hybridnet/op.h"
#include "kernels/functors/update_adaptive.h"
#include "ops/optimizer/declare_update.h"

namespace hybridnet::kernels {

void FtrlParams::describe(ParamSchema<FtrlParams>& schema) {
  ops::describe_lr<FtrlParams>(schema);
  schema.field("lamda1", &FtrlParams::lamda1).default_value(0.01).doc("L1 penalty.");
  schema.field("beta", &FtrlParams::beta)
      .default_value(1.0)
      .doc("Reduces the learning rate of elements with few gradients.");
  ops::describe_wd<FtrlParams>(schema);
  ops::describe_rescale_clip<FtrlParams>(schema);
}

void FtmlParams::describe(ParamSchema<FtmlParams>& schema) {
  ops::describe_lr<FtmlParams>(schema);
  schema.field("beta1", &FtmlParams::beta1).default_value(0.6).range(0.0, 1.0).doc("Decay rate of the leader.");
  schema.field("beta2", &FtmlParams::beta2)
      .default_value(0.999)
      .range(0.0, 1.0)
      .doc("Decay rate of the squared gradients.");
  schema.field("epsilon", &FtmlParams::epsilon).default_value(1e-8).doc("Added to the root, against division by zero.");
  schema.field("t", &FtmlParams::t).at_least(1).doc("Number of this update, from 1.");
  ops::describe_wd<FtmlParams>(schema);
  schema.field("rescale_grad", &FtmlParams::rescale_grad)
      .default_value(1.0)
      .doc("Factor applied to the gradient first.");
  schema.field("clip_grad", &FtmlParams::clip_grad)
      .default_value(-1.0)
      .doc("Gradients are clipped to [-clip_grad, clip_grad]; negative: not clipped.");
}

}  // namespace hybridnet::kernels

namespace hybridnet::ops {
namespace {

using kernels::FtmlParams, kernels::FtmlRule, kernels::FtrlParams, kernels::FtrlRule;

}  // namespace

void register_leaders(OpRegistry& ops) {
  declare_update<FtrlRule, FtrlParams>(ops, "ftrl_update", {"z", "n"})
      .alias("_sparse_ftrl_update")
      .doc(
          "g = clip(rescale_grad * grad); z += g - (sqrt(n + g * g) - sqrt(n)) * weight / lr; n += g * g; weight = "
          "(sign(z) * lamda1 - z) / ((beta + sqrt(n)) / lr + wd) if |z| > lamda1, else 0")
      .updates_rows_by("_lazy_ftrl_update")
      .sample({{3, 4}, {3, 4}, {3, 4}, {3, 4}}, {{"lr", "0.1"}, {"wd", "0.01"}}, 0.1, 2.0)
      .sample({{5}, {5}, {5}, {5}}, {{"lr", "0.1"}, {"lamda1", "1"}, {"clip_gradient", "0.5"}, {"beta", "0.5"}}, 0.1,
              2.0);
  declare_update<FtmlRule, FtmlParams>(ops, "ftml_update", {"d", "v", "z"})
      .doc(
          "g = clip(rescale_grad * grad + wd * weight); v is a running mean of g * g; d = (1 - beta1^t) / lr * (sqrt(v "
          "/ (1 - beta2^t)) + epsilon); z = beta1 * z + (1 - beta1) * g - (d - beta1 * d before) * weight; weight = -z "
          "/ d")
      .updates_rows_by("_lazy_ftml_update")
      .sample({{3, 4}, {3, 4}, {3, 4}, {3, 4}, {3, 4}}, {{"lr", "0.1"}, {"t", "3"}, {"wd", "0.01"}}, 0.1, 2.0);
  declare_lazy_update<FtrlRule, FtrlParams>(ops, "_lazy_ftrl_update", {"z", "n"})
      .doc("ftrl_update of the rows of the gradient.")
      .sample(lazy_sample(2, {{"lr", "0.1"}, {"wd", "0.01"}}));
  declare_lazy_update<FtmlRule, FtmlParams>(ops, "_lazy_ftml_update", {"d", "v", "z"})
      .doc("ftml_update of the rows of the gradient.")
      .sample(lazy_sample(3, {{"lr", "0.1"}, {"t", "3"}}));
}

}  // namespace hybridnet::ops
