// Adam with decoupled weight decay (Loshchilov and Hutter, arXiv 1711.05101). The factor of the gradient is a tensor,
// so that a loss scaler can compute it on the device; an update whose factor is 0, infinite or NaN is skipped.
#include <cmath>

#include "hybridnet/declare.h"
#include "kernels/functors/update_adam.h"
#include "ops/optimizer/declare_update.h"

namespace hybridnet::ops {
namespace {

using kernels::AdamWParams, kernels::AdamWRule;

template <typename P, typename S>
void describe_betas(S& schema) {
  schema.field("beta1", &P::beta1).default_value(0.9).doc("Decay rate of the mean of gradients.");
  schema.field("beta2", &P::beta2).default_value(0.999).doc("Decay rate of the mean of squared gradients.");
  schema.field("epsilon", &P::epsilon).default_value(1e-8).doc("Added to the root, against division by zero.");
}

template <typename P, typename S>
void describe_clip(S& schema) {
  schema.field("clip_gradient", &P::clip_gradient)
      .default_value(-1.0)
      .doc("Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.");
}

struct MultiAdamWParams {
  std::vector<double> lrs;
  double beta1, beta2, epsilon;
  std::vector<double> wds, etas;
  double clip_gradient;
  int32_t num_weights;
  static void describe(ParamSchema<MultiAdamWParams>& schema) {
    schema.field("lrs", &MultiAdamWParams::lrs).doc("Learning rates, one per tensor.");
    describe_betas<MultiAdamWParams>(schema);
    schema.field("wds", &MultiAdamWParams::wds).doc("Weight decays, one per tensor.");
    schema.field("etas", &MultiAdamWParams::etas).doc("Factors of the whole steps, one per tensor.");
    describe_clip<MultiAdamWParams>(schema);
    describe_num_weights<MultiAdamWParams>(schema);
  }
};

double scalar_of(const TensorRef& tensor) {
  double value = 0;
  dispatch_floating(tensor.dtype, [&](auto zero) { value = static_cast<double>(*tensor.as<decltype(zero)>()); });
  return value;
}

template <typename P>
void infer_adamw(const P& p, InferContext& c, const UpdateLayout& layout) {
  if constexpr (requires { p.lrs; }) {
    check_per_tensor("lrs", p.lrs.size(), p.num_weights);
    check_per_tensor("wds", p.wds.size(), p.num_weights);
    check_per_tensor("etas", p.etas.size(), p.num_weights);
  }
  if (c.num_in() != layout.num_inputs() + 1) {
    throw ParamError({.expected = std::to_string(layout.num_inputs()) + " tensors and rescale_grad",
                      .given = std::to_string(c.num_in())});
  }
  infer_updates(c, layout);
  const Shape& factor = c.in_shape(layout.num_inputs());
  if (factor.known() && factor.size() != 1) {
    throw ShapeError({.input = "rescale_grad", .expected = "one element", .given = factor.str()});
  }
  if (!factor.rank_known()) c.set_in_shape(layout.num_inputs(), Shape({1}));
  if (c.in_dtype(layout.num_inputs()) == DType::kUnknown) c.set_in_dtype(layout.num_inputs(), DType::kFloat32);
  c.require_dtype(layout.num_inputs(), kFloating);
}

template <typename P>
void run_adamw(const P& p, const KernelArgs& a, const UpdateLayout& layout) {
  const TensorRef& factor = a.in[static_cast<size_t>(layout.num_inputs())];
  const double rescale = device::current() ? 1.0 : scalar_of(factor);
  const auto rule_of = [&](auto zero, int i) { return AdamWRule<decltype(zero)>::make(p, i).with_scalars(&rescale); };
  if (layout.master) return run_updates<2, true>(a, layout, rule_of, &factor);
  run_updates<2, false>(a, layout, rule_of, &factor);
}

template <bool kMaster>
void run_rated_adamw(const void* params, const on_device::Rates& rates, const KernelArgs& a) {
  constexpr UpdateLayout layout{1, 2, kMaster};
  const TensorRef& factor = a.in[static_cast<size_t>(layout.num_inputs())];
  on_device::UpdateDTypes dtypes = update_dtypes(a.in[0].dtype, kMaster);
  dtypes.scalar = factor.dtype;
  const auto tensor = update_tensors<2>(a, layout, 0);
  const auto& p = *static_cast<const AdamWParams*>(params);
  if (dtypes.is_double()) return on_device::run_rated<AdamWRule<double>>(p, rates, dtypes, {factor.data}, tensor);
  on_device::run_rated<AdamWRule<float>>(p, rates, dtypes, {factor.data}, tensor);
}

OpBuilder<AdamWParams> declare_one(OpRegistry& ops, const char* name, bool master) {
  const UpdateLayout layout{1, 2, master};
  auto builder = ops.declare<AdamWParams>(name);
  builder.input("weight", "floating tensor, any shape").input("grad", "shape and dtype of weight");
  for (const char* state : {"mean", "var"})
    builder.input(state, master ? "shape of weight, float32; replaced" : "shape and dtype of weight; replaced");
  if (master) builder.input("weight32", "float32 copy of weight; replaced");
  builder.input("rescale_grad",
                "one element: factor applied to the gradient first; 0, infinite or nan skips the update");
  builder.output("weight_out", "updated weight").output("mean_out", "replaces mean").output("var_out", "replaces var");
  if (master) builder.output("weight32_out", "replaces weight32");
  builder.visible_outputs(1).inplace(0, 0);
  for (int k = 0; k < 2 + master; ++k) builder.inplace(2 + k, 1 + k).writeback(2 + k, 1 + k);
  on_device::add_rated_update(name, master ? run_rated_adamw<true> : run_rated_adamw<false>);
  return builder.any_device()
      .infer([layout](const AdamWParams& p, InferContext& c) { infer_adamw(p, c, layout); })
      .cpu([layout](const AdamWParams& p, const KernelArgs& a) { run_adamw(p, a, layout); }, kUpdateDTypes)
      .gradient(kNotDifferentiable);
}

OpBuilder<MultiAdamWParams> declare_many(OpRegistry& ops, const char* name, bool master) {
  auto layout_of = [master](const MultiAdamWParams& p) { return UpdateLayout{p.num_weights, 2, master}; };
  return ops.declare<MultiAdamWParams>(name)
      .any_device()
      .variadic_input("data", "",
                      "weight, gradient, mean and var of each tensor, then rescale_grad; states are replaced")
      .output("weight_out", "updated weights, then the replaced states")
      .num_inputs([layout_of](const MultiAdamWParams& p) { return layout_of(p).num_inputs() + 1; })
      .num_outputs([layout_of](const MultiAdamWParams& p) { return layout_of(p).num_outputs(); })
      .num_visible_outputs([](const MultiAdamWParams& p) { return p.num_weights; })
      .variadic_inplace(
          [layout_of](const MultiAdamWParams& p, int output) { return layout_of(p).inplace_input(output); })
      .variadic_writeback(
          [layout_of](const MultiAdamWParams& p, int output) { return layout_of(p).writeback_input(output); })
      .infer([layout_of](const MultiAdamWParams& p, InferContext& c) { infer_adamw(p, c, layout_of(p)); })
      .cpu([layout_of](const MultiAdamWParams& p, const KernelArgs& a) { run_adamw(p, a, layout_of(p)); },
           kUpdateDTypes)
      .gradient(kNotDifferentiable);
}

}  // namespace
}  // namespace hybridnet::ops

namespace hybridnet::kernels {

void AdamWParams::describe(ParamSchema<AdamWParams>& schema) {
  ops::describe_lr<AdamWParams>(schema);
  ops::describe_betas<AdamWParams>(schema);
  schema.field("wd", &AdamWParams::wd).default_value(0.0).doc("Weight decay: eta * wd * weight is subtracted.");
  schema.field("eta", &AdamWParams::eta).doc("Factor of the whole step.");
  ops::describe_clip<AdamWParams>(schema);
}

}  // namespace hybridnet::kernels

namespace hybridnet::ops {

void register_adamw(OpRegistry& ops) {
  const std::vector<std::pair<std::string, std::string>> one = {{"lr", "0.1"}, {"eta", "0.5"}, {"wd", "0.01"}};
  const std::vector<std::pair<std::string, std::string>> many = {
      {"lrs", "(0.1, 0.2)"}, {"wds", "(0, 0.1)"}, {"etas", "(1, 0.5)"}, {"num_weights", "2"}};
  declare_one(ops, "_adamw_update", false)
      .doc(
          "g = clip(rescale_grad * grad); mean and var are running means of g and g * g; weight -= eta * (lr * mean / "
          "(sqrt(var) + epsilon) + wd * weight)")
      .sample({{3, 4}, {3, 4}, {3, 4}, {3, 4}, {1}}, one, 0.1, 2.0)
      .sample({{5}, {5}, {5}, {5}, {1}}, {{"lr", "0.1"}, {"eta", "1"}, {"clip_gradient", "0.5"}, {"epsilon", "0.01"}},
              0.1, 2.0);
  declare_one(ops, "_mp_adamw_update", true)
      .doc("_adamw_update on a float32 copy of the weight; the weight is the rounded copy.")
      .sample(mixed_sample({{3}, {3}, {3}, {3}, {3}, {1}}, one, 2, 6));
  declare_many(ops, "_multi_adamw_update", false)
      .doc("_adamw_update of several tensors at once.")
      .sample({{3, 4}, {3, 4}, {3, 4}, {3, 4}, {5}, {5}, {5}, {5}, {1}}, many, 0.1, 2.0);
  Sample mixed = mixed_sample({{3}, {3}, {3}, {3}, {3}, {2}, {2}, {2}, {2}, {2}, {1}}, many, 2, 5);
  mixed.dtypes.back() = DType::kFloat32;
  declare_many(ops, "_multi_mp_adamw_update", true)
      .doc("_adamw_update of several tensors at once, on float32 copies of the weights.")
      .sample(std::move(mixed));
}

}  // namespace hybridnet::ops
