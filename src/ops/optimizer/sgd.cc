// Stochastic gradient descent, with and without momentum, for one tensor and for many.
#include "hybridnet/declare.h"
#include "kernels/functors/update_sgd.h"
#include "ops/optimizer/declare_update.h"

namespace hybridnet::kernels {

void SgdParams::describe(ParamSchema<SgdParams>& schema) {
  ops::describe_lr<SgdParams>(schema);
  ops::describe_wd<SgdParams>(schema);
  ops::describe_rescale_clip<SgdParams>(schema);
  ops::describe_lazy_update<SgdParams>(schema);
}

void SgdMomentumParams::describe(ParamSchema<SgdMomentumParams>& schema) {
  ops::describe_lr<SgdMomentumParams>(schema);
  ops::describe_momentum<SgdMomentumParams>(schema);
  ops::describe_wd<SgdMomentumParams>(schema);
  ops::describe_rescale_clip<SgdMomentumParams>(schema);
  ops::describe_lazy_update<SgdMomentumParams>(schema);
}

}  // namespace hybridnet::kernels

namespace hybridnet::ops {
namespace {

using kernels::SgdMomentumParams, kernels::SgdMomentumRule, kernels::SgdParams, kernels::SgdRule;

struct MultiSgdParams {
  std::vector<double> lrs, wds;
  double rescale_grad, clip_gradient;
  int32_t num_weights;
  static void describe(ParamSchema<MultiSgdParams>& schema) {
    describe_lrs_wds<MultiSgdParams>(schema);
    describe_rescale_clip<MultiSgdParams>(schema);
    describe_num_weights<MultiSgdParams>(schema);
  }
};

struct MultiSgdMomentumParams {
  std::vector<double> lrs, wds;
  double momentum, rescale_grad, clip_gradient;
  int32_t num_weights;
  static void describe(ParamSchema<MultiSgdMomentumParams>& schema) {
    describe_lrs_wds<MultiSgdMomentumParams>(schema);
    describe_momentum<MultiSgdMomentumParams>(schema);
    describe_rescale_clip<MultiSgdMomentumParams>(schema);
    describe_num_weights<MultiSgdMomentumParams>(schema);
  }
};

struct PreloadedSgdParams {
  double momentum = 0, rescale_grad, clip_gradient;
  int32_t num_weights;
  static void describe(ParamSchema<PreloadedSgdParams>& schema) {
    describe_rescale_clip<PreloadedSgdParams>(schema);
    describe_num_weights<PreloadedSgdParams>(schema);
  }
};

struct PreloadedSgdMomentumParams {
  double momentum, rescale_grad, clip_gradient;
  int32_t num_weights;
  static void describe(ParamSchema<PreloadedSgdMomentumParams>& schema) {
    describe_momentum<PreloadedSgdMomentumParams>(schema);
    describe_rescale_clip<PreloadedSgdMomentumParams>(schema);
    describe_num_weights<PreloadedSgdMomentumParams>(schema);
  }
};

// The parameters of one tensor, with its elements of the arrays.
struct PreloadedNumbers {
  double lr, wd, momentum, rescale_grad, clip_gradient;
};

template <template <typename> class Rule, bool kMaster, typename P>
void run_preloaded_on_device(const P& p, const KernelArgs& a, const UpdateLayout& layout, const float* lrs,
                             const float* wds) {
  const on_device::UpdateDTypes dtypes = update_dtypes(a.in[0].dtype, kMaster);
  const device::PreloadedRules rules = {lrs, wds, p.momentum, p.rescale_grad, p.clip_gradient, 0};
  const auto tensor_of = [&](int i) { return update_tensors<Rule<float>::kStates>(a, layout, i); };
  if (dtypes.is_double()) return on_device::run_preloaded<Rule<double>>(dtypes, layout.count, rules, tensor_of);
  on_device::run_preloaded<Rule<float>>(dtypes, layout.count, rules, tensor_of);
}

template <template <typename> class Rule, bool kMaster, typename P>
void run_preloaded(const P& p, const KernelArgs& a, const UpdateLayout& layout) {
  const auto numbers = static_cast<size_t>(layout.num_inputs());
  const float *lrs = a.in[numbers].as<float>(), *wds = a.in[numbers + 1].as<float>();
  if (device::current()) return run_preloaded_on_device<Rule, kMaster>(p, a, layout, lrs, wds);
  run_updates<Rule<float>::kStates, kMaster>(a, layout, [&](auto zero, int i) {
    const PreloadedNumbers numbers = {lrs[i], wds[i], p.momentum, p.rescale_grad, p.clip_gradient};
    return Rule<decltype(zero)>::make(numbers, i);
  });
}

// Learning rates and weight decays are two float32 tensors after the other inputs.
template <template <typename> class Rule, typename P, bool kMaster = false>
OpBuilder<P> declare_preloaded(OpRegistry& ops, const char* name) {
  constexpr int kStates = Rule<float>::kStates;
  auto layout_of = [](const P& p) { return UpdateLayout{p.num_weights, kStates, kMaster}; };
  return ops.declare<P>(name)
      .any_device()
      .variadic_input("data", "",
                      "weight, gradient and states of each tensor, then lrs and wds, each (num_weights,) float32")
      .output("weight_out", "updated weights, then the replaced states")
      .num_inputs([layout_of](const P& p) { return layout_of(p).num_inputs() + 2; })
      .num_outputs([layout_of](const P& p) { return layout_of(p).num_outputs(); })
      .num_visible_outputs([](const P& p) { return p.num_weights; })
      .variadic_inplace([layout_of](const P& p, int output) { return layout_of(p).inplace_input(output); })
      .variadic_writeback([layout_of](const P& p, int output) { return layout_of(p).writeback_input(output); })
      .infer([layout_of](const P& p, InferContext& c) {
        infer_updates(c, layout_of(p));
        for (int i = layout_of(p).num_inputs(); i < c.num_in(); ++i) {
          c.set_in_shape(i, Shape({p.num_weights}));
          c.set_in_dtype(i, DType::kFloat32);
        }
      })
      .cpu([layout_of](const P& p, const KernelArgs& a) { run_preloaded<Rule, kMaster>(p, a, layout_of(p)); },
           kUpdateDTypes)
      .gradient(kNotDifferentiable);
}

void register_single(OpRegistry& ops) {
  declare_update<SgdRule, SgdParams>(ops, "sgd_update", {})
      .alias("_sparse_sgd_update")
      .doc("weight = (1 - lr * wd) * weight - lr * clip(rescale_grad * grad)")
      .updates_rows_by("_lazy_sgd_update")
      .sample({{3, 4}, {3, 4}}, {{"lr", "0.1"}, {"wd", "0.01"}})
      .sample({{5}, {5}}, {{"lr", "0.1"}, {"clip_gradient", "0.5"}, {"rescale_grad", "2"}});
  declare_update<SgdMomentumRule, SgdMomentumParams>(ops, "sgd_mom_update", {"mom"})
      .alias("_sparse_sgd_mom_update")
      .doc("mom = momentum * mom - lr * (wd * weight + clip(rescale_grad * grad)); weight = weight + mom")
      .updates_rows_by("_lazy_sgd_mom_update")
      .sample({{3, 4}, {3, 4}, {3, 4}}, {{"lr", "0.1"}, {"wd", "0.01"}, {"momentum", "0.9"}})
      .sample({{5}, {5}, {5}}, {{"lr", "0.1"}, {"clip_gradient", "0.5"}});
  declare_lazy_update<SgdRule, SgdParams>(ops, "_lazy_sgd_update", {})
      .doc("sgd_update of the rows of the gradient.")
      .sample(lazy_sample(0, {{"lr", "0.1"}, {"wd", "0.01"}}));
  declare_lazy_update<SgdMomentumRule, SgdMomentumParams>(ops, "_lazy_sgd_mom_update", {"mom"})
      .doc("sgd_mom_update of the rows of the gradient.")
      .sample(lazy_sample(1, {{"lr", "0.1"}, {"momentum", "0.9"}}));
  declare_update<SgdRule, SgdParams, true>(ops, "mp_sgd_update", {})
      .doc("sgd_update on a float32 copy of the weight; the weight is the rounded copy.")
      .sample(mixed_sample({{3, 4}, {3, 4}, {3, 4}}, {{"lr", "0.1"}, {"wd", "0.01"}}, 2, 3));
  declare_update<SgdMomentumRule, SgdMomentumParams, true>(ops, "mp_sgd_mom_update", {"mom"})
      .doc("sgd_mom_update on a float32 copy of the weight; the weight is the rounded copy.")
      .sample(mixed_sample({{3}, {3}, {3}, {3}}, {{"lr", "0.1"}, {"momentum", "0.9"}}, 2, 4));
}

void register_multi(OpRegistry& ops) {
  const std::vector<std::pair<std::string, std::string>> attrs = {
      {"lrs", "(0.1, 0.2)"}, {"wds", "(0, 0.1)"}, {"num_weights", "2"}};
  declare_multi_update<SgdRule, MultiSgdParams>(ops, "multi_sgd_update")
      .doc("sgd_update of several tensors at once.")
      .sample({{3, 4}, {3, 4}, {5}, {5}}, attrs);
  declare_multi_update<SgdMomentumRule, MultiSgdMomentumParams>(ops, "multi_sgd_mom_update")
      .doc("sgd_mom_update of several tensors at once.")
      .sample({{3, 4}, {3, 4}, {3, 4}, {5}, {5}, {5}}, attrs);
  declare_multi_update<SgdRule, MultiSgdParams, true>(ops, "multi_mp_sgd_update")
      .doc("mp_sgd_update of several tensors at once.")
      .sample(mixed_sample({{3}, {3}, {3}, {2}, {2}, {2}}, attrs, 2, 3));
  declare_multi_update<SgdMomentumRule, MultiSgdMomentumParams, true>(ops, "multi_mp_sgd_mom_update")
      .doc("mp_sgd_mom_update of several tensors at once.")
      .sample(mixed_sample({{3}, {3}, {3}, {3}, {2}, {2}, {2}, {2}}, attrs, 2, 4));
}

Sample preloaded_sample(int stride, int half) {
  Sample s;
  s.low = 0.1;
  s.high = 1.0;
  for (int tensor = 0; tensor < 2; ++tensor) {
    for (int k = 0; k < stride; ++k) {
      s.inputs.push_back(Shape({3 - tensor}));
      s.dtypes.push_back(k < half ? DType::kFloat16 : half > 0 ? DType::kFloat32 : DType::kUnknown);
    }
  }
  for (int k = 0; k < 2; ++k) {
    s.inputs.push_back(Shape({2}));
    s.dtypes.push_back(DType::kFloat32);
  }
  s.attrs = {{"num_weights", "2"}};
  return s;
}

void register_preloaded(OpRegistry& ops) {
  declare_preloaded<SgdRule, PreloadedSgdParams>(ops, "preloaded_multi_sgd_update")
      .doc("multi_sgd_update with learning rates and weight decays from tensors.")
      .sample(preloaded_sample(2, 0));
  declare_preloaded<SgdMomentumRule, PreloadedSgdMomentumParams>(ops, "preloaded_multi_sgd_mom_update")
      .doc("multi_sgd_mom_update with learning rates and weight decays from tensors.")
      .sample(preloaded_sample(3, 0));
  declare_preloaded<SgdRule, PreloadedSgdParams, true>(ops, "preloaded_multi_mp_sgd_update")
      .doc("multi_mp_sgd_update with learning rates and weight decays from tensors.")
      .sample(preloaded_sample(3, 2));
  declare_preloaded<SgdMomentumRule, PreloadedSgdMomentumParams, true>(ops, "preloaded_multi_mp_sgd_mom_update")
      .doc("multi_mp_sgd_mom_update with learning rates and weight decays from tensors.")
      .sample(preloaded_sample(4, 2));
}

}  // namespace

void register_sgd(OpRegistry& ops) {
  register_single(ops);
  register_multi(ops);
  register_preloaded(ops);
}

}  // namespace hybridnet::ops
