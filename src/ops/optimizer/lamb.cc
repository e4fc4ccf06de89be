// LAMB (You et al., arXiv 1904.00962): Adam's step, scaled for each tensor by the norm of the weight over the norm of
// the step. There are two operators per update, because the norms are computed between them.
#include <cmath>

#include "hybridnet/declare.h"
#include "kernels/functors/update_adam.h"
#include "ops/optimizer/declare_update.h"

namespace hybridnet::kernels {

void LambStepParams::describe(ParamSchema<LambStepParams>& schema) {
  schema.field("beta1", &LambStepParams::beta1).default_value(0.9).doc("Decay rate of the mean of gradients.");
  schema.field("beta2", &LambStepParams::beta2)
      .default_value(0.999)
      .doc("Decay rate of the mean of squared gradients.");
  schema.field("epsilon", &LambStepParams::epsilon)
      .default_value(1e-6)
      .doc("Added to the root, against division by zero.");
  schema.field("t", &LambStepParams::t).at_least(1).doc("Number of this update, from 1.");
  schema.field("bias_correction", &LambStepParams::bias_correction)
      .default_value(true)
      .doc("Whether the moments' bias is corrected.");
  schema.field("wd", &LambStepParams::wd).doc("Weight decay: wd * weight is added to the step.");
  ops::describe_rescale_clip<LambStepParams>(schema);
}

void LambApplyParams::describe(ParamSchema<LambApplyParams>& schema) {
  ops::describe_lr<LambApplyParams>(schema);
  schema.field("lower_bound", &LambApplyParams::lower_bound)
      .default_value(-1.0)
      .doc("Lower bound of the norm of the weight; negative: no bound.");
  schema.field("upper_bound", &LambApplyParams::upper_bound)
      .default_value(-1.0)
      .doc("Upper bound of the norm of the weight; negative: no bound.");
}

}  // namespace hybridnet::kernels

namespace hybridnet::ops {
namespace {

using kernels::LambApplyParams, kernels::LambApplyRule, kernels::LambRule, kernels::LambStepParams;

// Computes the steps and the moments of all elements; inputs: weight, grad, mean, var and, with a float32 copy,
// weight32.
template <typename T, typename S, typename A>
void compute_steps(const LambStepParams& p, const KernelArgs& a, bool master) {
  const A beta1 = static_cast<A>(p.beta1), beta2 = static_cast<A>(p.beta2), epsilon = static_cast<A>(p.epsilon),
          wd = static_cast<A>(p.wd);
  const A rescale = static_cast<A>(p.rescale_grad), bound = clip_bound<A>(p.clip_gradient);
  const A scale1 = static_cast<A>(p.bias_correction ? 1.0 / (1.0 - std::pow(p.beta1, p.t)) : 1.0);
  const A scale2 = static_cast<A>(p.bias_correction ? 1.0 / (1.0 - std::pow(p.beta2, p.t)) : 1.0);
  const T *weight = a.in[0].as<T>(), *grad = a.in[1].as<T>();
  const float* copy = master ? a.in[4].as<float>() : nullptr;
  const S *mean_in = a.in[2].as<S>(), *var_in = a.in[3].as<S>();
  S *step = a.out[0].as<S>(), *mean = a.out[1].as<S>(), *var = a.out[2].as<S>();
  parallel_for(a.in[0].size(), kUpdateNs, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const A g = clip_to(static_cast<A>(grad[i]) * rescale, bound);
      const A m = beta1 * static_cast<A>(mean_in[i]) + (A(1) - beta1) * g;
      const A v = beta2 * static_cast<A>(var_in[i]) + (A(1) - beta2) * g * g;
      const A w = copy != nullptr ? static_cast<A>(copy[i]) : static_cast<A>(weight[i]);
      mean[i] = static_cast<S>(m);
      var[i] = static_cast<S>(v);
      step[i] = static_cast<S>(m * scale1 / (std::sqrt(v * scale2) + epsilon) + wd * w);
    }
  });
}

template <typename S>
double ratio_of(const LambApplyParams& p, const KernelArgs& a) {
  double weight_norm = static_cast<double>(*a.in[2].as<S>());
  const double step_norm = static_cast<double>(*a.in[3].as<S>());
  if (p.lower_bound >= 0) weight_norm = std::max(weight_norm, p.lower_bound);
  if (p.upper_bound >= 0) weight_norm = std::min(weight_norm, p.upper_bound);
  return weight_norm == 0 || step_norm == 0 ? 1.0 : weight_norm / step_norm;
}

template <typename T, typename S, typename A>
void apply_steps(const LambApplyParams& p, const KernelArgs& a, bool master) {
  const A rate = static_cast<A>(p.lr * ratio_of<S>(p, a));
  const T* weight = a.in[0].as<T>();
  const S* step = a.in[1].as<S>();
  T* out = a.out[0].as<T>();
  const float* copy_in = master ? a.in[4].as<float>() : nullptr;
  float* copy_out = master ? a.out[1].as<float>() : nullptr;
  parallel_for(a.in[0].size(), kUpdateNs, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const A w = (master ? static_cast<A>(copy_in[i]) : static_cast<A>(weight[i])) - rate * static_cast<A>(step[i]);
      if (master) copy_out[i] = static_cast<float>(w);
      out[i] = static_cast<T>(w);
    }
  });
}

on_device::UpdateDTypes step_dtypes(const KernelArgs& a) {
  const DType weight = a.in[0].dtype, state = a.in[2].dtype;
  return {.weight = weight, .grad = weight, .state = state, .out = state};
}

device::UpdateTensors<2> step_tensors(const KernelArgs& a, bool master) {
  device::UpdateTensors<2> t{
      .weight = a.in[0].data, .grad = a.in[1].data, .out = a.out[0].data, .size = a.in[0].size()};
  for (size_t k = 0; k < 2; ++k) {
    t.state_in[k] = a.in[2 + k].data;
    t.state_out[k] = a.out[1 + k].data;
  }
  if (master) t.master_in = a.in[4].as<float>();
  return t;
}

// The step takes the place of the gradient, with the dtype of states.
on_device::UpdateDTypes apply_dtypes(const KernelArgs& a) {
  const DType weight = a.in[0].dtype, state = a.in[1].dtype;
  return {.weight = weight, .grad = state, .state = state, .out = weight, .scalar = a.in[2].dtype};
}

device::UpdateTensors<0> apply_tensors(const KernelArgs& a, bool master) {
  device::UpdateTensors<0> t{
      .weight = a.in[0].data, .grad = a.in[1].data, .out = a.out[0].data, .size = a.in[0].size()};
  if (master) {
    t.master_in = a.in[4].as<float>();
    t.master_out = a.out[1].as<float>();
  }
  return t;
}

template <bool kMaster>
void run_rated_step(const void* params, const on_device::Rates& rates, const KernelArgs& a) {
  const auto& p = *static_cast<const LambStepParams*>(params);
  const on_device::UpdateDTypes dtypes = step_dtypes(a);
  const auto tensor = step_tensors(a, kMaster);
  if (dtypes.is_double()) return on_device::run_rated<LambRule<double>>(p, rates, dtypes, {}, tensor);
  on_device::run_rated<LambRule<float>>(p, rates, dtypes, {}, tensor);
}

template <bool kMaster>
void run_rated_apply(const void* params, const on_device::Rates& rates, const KernelArgs& a) {
  const auto& p = *static_cast<const LambApplyParams*>(params);
  const on_device::UpdateDTypes dtypes = apply_dtypes(a);
  const void* const norms[2] = {a.in[2].data, a.in[3].data};
  const auto tensor = apply_tensors(a, kMaster);
  if (dtypes.is_double()) return on_device::run_rated<LambApplyRule<double>>(p, rates, dtypes, norms, tensor);
  on_device::run_rated<LambApplyRule<float>>(p, rates, dtypes, norms, tensor);
}

template <typename A>
void compute_steps_on_device(const LambStepParams& p, const KernelArgs& a, bool master) {
  on_device::run_given<LambRule<A>, 1>(
      step_dtypes(a), 1, {}, [&](int) { return step_tensors(a, master); },
      [&](int i) { return LambRule<A>::make(p, i); });
}

template <typename A>
void apply_steps_on_device(const LambApplyParams& p, const KernelArgs& a, bool master) {
  on_device::run_given<LambApplyRule<A>, 1>(
      apply_dtypes(a), 1, {a.in[2].data, a.in[3].data}, [&](int) { return apply_tensors(a, master); },
      [&](int i) { return LambApplyRule<A>::make(p, i); });
}

// Infers equal shapes for the inputs and outputs in the lists. With a master, all of `float_in` and `float_out` are
// float32; the others have the weight's dtype.
void infer_tensors(InferContext& c, std::initializer_list<int> in, std::initializer_list<int> out,
                   std::initializer_list<int> float_in, std::initializer_list<int> float_out, bool master) {
  Shape known;
  for (int i : in) {
    c.set_in_shape(i, known);
    known = c.in_shape(i);
  }
  for (int i : out) {
    c.set_out_shape(i, known);
    known = c.out_shape(i);
  }
  for (int i : in) c.set_in_shape(i, known);
  for (int i : out) c.set_out_shape(i, known);
  const DType state = master ? DType::kFloat32 : c.in_dtype(0);
  for (int i : float_in) c.set_in_dtype(i, state);
  for (int i : float_out) c.set_out_dtype(i, state);
}

void declare_step(OpRegistry& ops, const char* name, bool master, Sample sample, const char* doc) {
  auto builder = ops.declare<LambStepParams>(name);
  builder.doc(doc).input("weight", "floating tensor, any shape").input("grad", "shape and dtype of weight");
  builder.input("mean", "replaced").input("var", "replaced");
  if (master) builder.input("weight32", "float32 copy of weight");
  on_device::add_rated_update(name, master ? run_rated_step<true> : run_rated_step<false>);
  builder.any_device().output("g", "the step").output("mean_out", "replaces mean").output("var_out", "replaces var");
  builder.visible_outputs(1).inplace(2, 1).inplace(3, 2).writeback(2, 1).writeback(3, 2);
  builder
      .infer([master](const LambStepParams&, InferContext& c) {
        c.set_in_dtype(1, c.in_dtype(0));
        if (master)
          infer_tensors(c, {0, 1, 2, 3, 4}, {0, 1, 2}, {2, 3, 4}, {0, 1, 2}, true);
        else
          infer_tensors(c, {0, 1, 2, 3}, {0, 1, 2}, {2, 3}, {0, 1, 2}, false);
      })
      .cpu(
          [master](const LambStepParams& p, const KernelArgs& a) {
            dispatch_update(a.in[0].dtype, master, [&](auto t, auto s, auto c) {
              if (device::current()) return compute_steps_on_device<decltype(c)>(p, a, master);
              compute_steps<decltype(t), decltype(s), decltype(c)>(p, a, master);
            });
          },
          kUpdateDTypes)
      .gradient(kNotDifferentiable)
      .sample(std::move(sample));
}

void declare_apply(OpRegistry& ops, const char* name, bool master, Sample sample, const char* doc) {
  auto builder = ops.declare<LambApplyParams>(name);
  builder.doc(doc).input("weight", "floating tensor, any shape").input("g", "the step, from phase 1");
  builder.input("r1", "norm of weight, one element").input("r2", "norm of g, one element");
  if (master) builder.input("weight32", "float32 copy of weight; replaced");
  on_device::add_rated_update(name, master ? run_rated_apply<true> : run_rated_apply<false>);
  builder.any_device().output("weight_out", "updated weight").inplace(0, 0).visible_outputs(1);
  if (master) builder.output("weight32_out", "replaces weight32").inplace(4, 1).writeback(4, 1);
  builder
      .infer([master](const LambApplyParams&, InferContext& c) {
        c.set_out_dtype(0, c.in_dtype(0));
        if (master)
          infer_tensors(c, {0, 1, 4}, {0, 1}, {1, 2, 3, 4}, {1}, true);
        else
          infer_tensors(c, {0, 1}, {0}, {1, 2, 3}, {0}, false);
        for (int i : {2, 3}) {
          const Shape& norm = c.in_shape(i);
          if (norm.known() && norm.size() != 1)
            throw ShapeError({.input = c.input_name(i), .expected = "one element", .given = norm.str()});
          if (!norm.rank_known()) c.set_in_shape(i, Shape({1}));
        }
      })
      .cpu(
          [master](const LambApplyParams& p, const KernelArgs& a) {
            dispatch_update(a.in[0].dtype, master, [&](auto t, auto s, auto c) {
              if (device::current()) return apply_steps_on_device<decltype(c)>(p, a, master);
              apply_steps<decltype(t), decltype(s), decltype(c)>(p, a, master);
            });
          },
          kUpdateDTypes)
      .gradient(kNotDifferentiable)
      .sample(std::move(sample));
}

Sample sample_of(std::vector<Shape> inputs, std::vector<std::pair<std::string, std::string>> attrs) {
  Sample s;
  s.inputs = std::move(inputs);
  s.attrs = std::move(attrs);
  s.low = 0.1;
  return s;
}

}  // namespace

void register_lamb(OpRegistry& ops) {
  const std::vector<std::pair<std::string, std::string>> step = {{"t", "2"}, {"wd", "0.01"}},
                                                         apply = {{"lr", "0.1"}, {"upper_bound", "0.5"}};
  declare_step(ops, "lamb_update_phase1", false, sample_of({{3, 4}, {3, 4}, {3, 4}, {3, 4}}, step),
               "Adam's step: g = clip(rescale_grad * grad); mean and var are running means of g and g * g; the result "
               "is mean / (sqrt(var) + epsilon) + wd * weight, with corrected moments if bias_correction.");
  declare_step(ops, "mp_lamb_update_phase1", true, mixed_sample({{3}, {3}, {3}, {3}, {3}}, step, 2, 5),
               "lamb_update_phase1 with float32 moments, step and copy of the weight.");
  declare_apply(ops, "lamb_update_phase2", false, sample_of({{3, 4}, {3, 4}, {1}, {1}}, apply),
                "weight -= lr * ratio * g; ratio = r1, clipped to [lower_bound, upper_bound], over r2, or 1 if one of "
                "them is 0.");
  declare_apply(ops, "mp_lamb_update_phase2", true, mixed_sample({{3}, {3}, {1}, {1}, {3}}, apply, 1, 5),
                "lamb_update_phase2 on a float32 copy of the weight; the weight is the rounded copy.");
}

}  // namespace hybridnet::ops
