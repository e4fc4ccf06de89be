// Declares an optimizer update from its rule: the operator for one tensor, its mixed-precision variant, and the
// variants for many tensors.
#pragma once

#include <string>
#include <vector>

#include "hybridnet/declare.h"
#include "ops/optimizer/update_loop.h"

namespace hybridnet::ops {

// Parameter fields that updates share. Each function adds one field to a schema of parameters with a member of that
// name.
template <typename P, typename S>
void describe_lr(S& schema) {
  schema.field("lr", &P::lr).doc("Learning rate.");
}
template <typename P, typename S>
void describe_wd(S& schema) {
  schema.field("wd", &P::wd).default_value(0.0).doc("Weight decay: wd * weight is added to the gradient.");
}
template <typename P, typename S>
void describe_rescale_clip(S& schema) {
  schema.field("rescale_grad", &P::rescale_grad).default_value(1.0).doc("Factor applied to the gradient first.");
  schema.field("clip_gradient", &P::clip_gradient)
      .default_value(-1.0)
      .doc("Gradients are clipped to [-clip_gradient, clip_gradient]; negative: not clipped.");
}
template <typename P, typename S>
void describe_momentum(S& schema) {
  schema.field("momentum", &P::momentum).default_value(0.0).doc("Factor of the previous step.");
}
template <typename P, typename S>
void describe_lazy_update(S& schema) {
  schema.field("lazy_update", &P::lazy_update).default_value(true).hidden().doc("Affects sparse gradients only.");
}
template <typename P, typename S>
void describe_lrs_wds(S& schema) {
  schema.field("lrs", &P::lrs).doc("Learning rates, one per tensor.");
  schema.field("wds", &P::wds).doc("Weight decays, one per tensor.");
}
template <typename P, typename S>
void describe_num_weights(S& schema) {
  schema.field("num_weights", &P::num_weights).default_value(1).range(1, 1 << 24).doc("Number of tensors updated.");
}

// The update of one tensor on a device, with numbers from an array.
template <template <typename> class Rule, typename P, bool kMaster>
void run_rated_update(const void* params, const on_device::Rates& rates, const KernelArgs& a) {
  constexpr int kStates = Rule<float>::kStates;
  const on_device::UpdateDTypes dtypes = update_dtypes(a.in[0].dtype, kMaster);
  const auto tensor = update_tensors<kStates>(a, {1, kStates, kMaster}, 0);
  const P& p = *static_cast<const P*>(params);
  if (dtypes.is_double()) return on_device::run_rated<Rule<double>>(p, rates, dtypes, {}, tensor);
  on_device::run_rated<Rule<float>>(p, rates, dtypes, {}, tensor);
}

// Declares the update of one tensor with inputs weight, grad and states. Rule<A>::make(params, tensor) creates a
// Rule<A>. kMaster: with a float32 copy of the weight.
template <template <typename> class Rule, typename P, bool kMaster = false>
OpBuilder<P> declare_update(OpRegistry& ops, const char* name, std::vector<std::string> states) {
  constexpr int kStates = Rule<float>::kStates;
  static constexpr UpdateLayout layout{1, kStates, kMaster};
  auto builder = ops.declare<P>(name);
  builder.input("weight", "floating tensor, any shape").input("grad", "shape and dtype of weight");
  for (const std::string& s : states)
    builder.input(s, kMaster ? "shape of weight, float32; replaced" : "shape and dtype of weight; replaced");
  if (kMaster) builder.input("weight32", "float32 copy of weight; replaced");
  builder.output("weight_out", "updated weight");
  for (const std::string& s : states) builder.output(s + "_out", "replaces " + s);
  if (kMaster) builder.output("weight32_out", "replaces weight32");
  builder.visible_outputs(1).inplace(0, 0);
  for (int k = 0; k < kStates + kMaster; ++k) builder.inplace(2 + k, 1 + k).writeback(2 + k, 1 + k);
  on_device::add_rated_update(name, run_rated_update<Rule, P, kMaster>);
  return builder.any_device()
      .infer([](const P&, InferContext& c) { infer_updates(c, layout); })
      .cpu(
          [](const P& p, const KernelArgs& a) {
            run_updates<kStates, kMaster>(a, layout,
                                          [&](auto zero, int i) { return Rule<decltype(zero)>::make(p, i); });
          },
          kUpdateDTypes)
      .gradient(kNotDifferentiable);
}

// The same update of some rows only: grad (n, ...) holds the gradients of the rows `rows` (n,) of weight and states,
// each row once; the other rows are not changed.
template <template <typename> class Rule, typename P>
OpBuilder<P> declare_lazy_update(OpRegistry& ops, const char* name, std::vector<std::string> states) {
  constexpr int kStates = Rule<float>::kStates;
  auto builder = ops.declare<P>(name);
  builder.input("weight", "floating tensor (m, ...)").input("grad", "(n, ...), dtype of weight");
  for (const std::string& s : states) builder.input(s, "shape and dtype of weight; its rows are replaced");
  builder.input("rows", "(n,): numbers of the rows of weight that correspond to grad, integers of any dtype");
  builder.output("weight_out", "updated weight");
  for (const std::string& s : states) builder.output(s + "_out", "replaces " + s);
  builder.visible_outputs(1).inplace(0, 0);
  for (int k = 0; k < kStates; ++k) builder.inplace(2 + k, 1 + k).writeback(2 + k, 1 + k);
  return builder.internal()
      .infer([](const P&, InferContext& c) { infer_lazy_update(c, kStates); })
      .cpu([](const P& p, const KernelArgs& a) { run_lazy_update<Rule>(p, a); }, kUpdateDTypes)
      .may_raise()
      .cost([](const P&, auto in, auto) { return kUpdateNs * static_cast<double>(in[1].shape.size()); })
      .gradient(kNotDifferentiable);
}

// Sample of a lazy update: two rows of a weight with four.
inline Sample lazy_sample(int states, std::vector<std::pair<std::string, std::string>> attrs) {
  Sample s;
  s.inputs = {{4, 3}, {2, 3}};
  for (int k = 0; k < states; ++k) s.inputs.push_back({4, 3});
  s.inputs.push_back(Shape{2});
  s.attrs = std::move(attrs);
  s.low = 0.1;
  s.high = 2.0;
  return s;
}

// Inputs are interleaved tensors: weight, grad, states and master of the first tensor, then of the second, ... The
// parameters have num_weights.
template <template <typename> class Rule, typename P, bool kMaster = false>
OpBuilder<P> declare_multi_update(OpRegistry& ops, const char* name) {
  constexpr int kStates = Rule<float>::kStates;
  auto layout_of = [](const P& p) { return UpdateLayout{p.num_weights, kStates, kMaster}; };
  return ops.declare<P>(name)
      .any_device()
      .variadic_input("data", "", "weight, gradient and states of each tensor; states are replaced")
      .output("weight_out", "updated weights, then the replaced states")
      .num_inputs([layout_of](const P& p) { return layout_of(p).num_inputs(); })
      .num_outputs([layout_of](const P& p) { return layout_of(p).num_outputs(); })
      .num_visible_outputs([](const P& p) { return p.num_weights; })
      .variadic_inplace([layout_of](const P& p, int output) { return layout_of(p).inplace_input(output); })
      .variadic_writeback([layout_of](const P& p, int output) { return layout_of(p).writeback_input(output); })
      .infer([layout_of](const P& p, InferContext& c) {
        check_per_tensor("lrs", p.lrs.size(), p.num_weights);
        check_per_tensor("wds", p.wds.size(), p.num_weights);
        infer_updates(c, layout_of(p));
      })
      .cpu(
          [layout_of](const P& p, const KernelArgs& a) {
            run_updates<kStates, kMaster>(a, layout_of(p),
                                          [&](auto zero, int i) { return Rule<decltype(zero)>::make(p, i); });
          },
          kUpdateDTypes)
      .gradient(kNotDifferentiable);
}

// Sample inputs for mixed precision: 16-bit weights and gradients, float32 states.
inline Sample mixed_sample(std::vector<Shape> inputs, std::vector<std::pair<std::string, std::string>> attrs,
                           int half_per_tensor, int stride) {
  Sample s;
  s.attrs = std::move(attrs);
  s.low = 0.1;
  s.high = 1.0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    s.dtypes.push_back(static_cast<int>(i) % stride < half_per_tensor ? DType::kFloat16 : DType::kFloat32);
  }
  s.inputs = std::move(inputs);
  return s;
}

}  // namespace hybridnet::ops
