// _multi_lamb_update and _multi_mp_lamb_update: complete LAMB updates of several tensors, including the norms.
//   You et al.: Large Batch Optimization for Deep Learning: Training BERT in 76 minutes, ICLR 2020, algorithm 2.
#include <cmath>

#include "hybridnet/declare.h"
#include "kernels/functors/update_adam.h"
#include "ops/optimizer/declare_update.h"
#include "ops/optimizer/device_squares.h"
#include "ops/optimizer/sum_squares.h"
#include "storage/temporary.h"

namespace hybridnet::ops {
namespace {

struct MultiLambParams {
  std::vector<double> learning_rates, wds;
  double beta1, beta2, epsilon, rescale_grad, clip_gradient, lower_bound, upper_bound;
  bool bias_correction;
  Tuple step_count;
  int32_t num_tensors;
  static void describe(ParamSchema<MultiLambParams>& schema) {
    schema.field("learning_rates", &MultiLambParams::learning_rates).doc("Learning rates, one per tensor.");
    schema.field("beta1", &MultiLambParams::beta1).default_value(0.9).doc("Decay rate of the mean of gradients.");
    schema.field("beta2", &MultiLambParams::beta2)
        .default_value(0.999)
        .doc("Decay rate of the mean of squared gradients.");
    schema.field("epsilon", &MultiLambParams::epsilon)
        .default_value(1e-6)
        .doc("Added to the root, against division by zero.");
    schema.field("bias_correction", &MultiLambParams::bias_correction)
        .default_value(true)
        .doc("Whether the bias of the moments is corrected.");
    schema.field("wds", &MultiLambParams::wds).doc("Weight decays, one per tensor.");
    describe_rescale_clip<MultiLambParams>(schema);
    schema.field("lower_bound", &MultiLambParams::lower_bound)
        .default_value(-1.0)
        .doc("Lower bound of the norm of the weight; negative: no bound.");
    schema.field("upper_bound", &MultiLambParams::upper_bound)
        .default_value(-1.0)
        .doc("Upper bound of the norm of the weight; negative: no bound.");
    schema.field("step_count", &MultiLambParams::step_count).doc("Number of this update of each tensor, from 1.");
    schema.field("num_tensors", &MultiLambParams::num_tensors)
        .default_value(1)
        .range(1, 1 << 24)
        .doc("Number of tensors updated.");
  }
};

using kernels::LambRule;

template <typename A>
LambRule<A> rule_of(const MultiLambParams& p, int i) {
  return LambRule<A>::make(p, p.wds[static_cast<size_t>(i)], static_cast<double>(p.step_count[i]));
}

// Computes the directions of elements [begin, end) of one tensor. W: type of the updated weight, G: of gradients, S: of
// states.
template <typename W, typename G, typename S, typename A>
void directions(const LambRule<A>& rule, const W* weight, const G* grad, const S* mean_in, const S* var_in, S* mean,
                S* var, A* out, int64_t begin, int64_t end) {
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) {
    A state[2] = {static_cast<A>(mean_in[i]), static_cast<A>(var_in[i])};
    out[i] = rule.step(static_cast<A>(weight[i]), static_cast<A>(grad[i]), state);
    mean[i] = static_cast<S>(state[0]);
    var[i] = static_cast<S>(state[1]);
  }
}

// T: weights and gradients; S: states; W: the updated weight, which is the float32 copy if there is one.
template <typename T, typename S, typename W>
void update_tensor(const MultiLambParams& p, const UpdateTensors<2>& t, const W* weight, W* master_out, int i) {
  using A = accumulator_t<S>;
  const auto rule = rule_of<A>(p, i);
  Temporary<A> step(static_cast<size_t>(t.size));
  parallel_for(t.size, kUpdateNs, [&](int64_t begin, int64_t end) {
    directions(rule, weight, static_cast<const T*>(t.grad), static_cast<const S*>(t.state_in[0]),
               static_cast<const S*>(t.state_in[1]), static_cast<S*>(t.state_out[0]), static_cast<S*>(t.state_out[1]),
               step.data(), begin, end);
  });
  const double weight_norm = std::sqrt(sum_squares(weight, t.size)),
               step_norm = std::sqrt(sum_squares(step.data(), t.size));
  const A rate = static_cast<A>(kernels::trusted_rate(p.learning_rates[static_cast<size_t>(i)], weight_norm, step_norm,
                                                      p.lower_bound, p.upper_bound));
  T* out = static_cast<T*>(t.out);
  parallel_for(t.size, kUpdateNs, [&](int64_t begin, int64_t end) {
    for (int64_t j = begin; j < end; ++j) {
      const A w = static_cast<A>(weight[j]) - rate * step[static_cast<size_t>(j)];
      if (master_out != nullptr) master_out[j] = static_cast<W>(w);
      out[j] = static_cast<T>(w);
    }
  });
}

// The directions of all tensors are one launch; each tensor then has its norms and its step.
template <typename A>
void run_multi_on_device(const MultiLambParams& p, const KernelArgs& a, const UpdateLayout& layout) {
  const DType weight = a.in[0].dtype, state = layout.master ? DType::kFloat32 : weight;
  const DType compute = std::is_same_v<A, double> ? DType::kFloat64 : DType::kFloat32;
  const on_device::UpdateDTypes dtypes{.weight = weight, .grad = weight, .state = state, .out = compute};
  int64_t elements = 0;
  for (int i = 0; i < layout.count; ++i) elements += update_tensors<2>(a, layout, i).size;
  const OwnedBlock steps(elements * dtype_size(compute), device::current()->device());
  std::vector<A*> step_of;
  for (A* next = static_cast<A*>(steps.data()); static_cast<int>(step_of.size()) < layout.count;) {
    step_of.push_back(next);
    next += update_tensors<2>(a, layout, static_cast<int>(step_of.size()) - 1).size;
  }
  constexpr int kCapacity = device::update_capacity<2>(sizeof(LambRule<A>));
  on_device::run_given<LambRule<A>, kCapacity>(
      dtypes, layout.count, {},
      [&](int i) {
        device::UpdateTensors<2> t = update_tensors<2>(a, layout, i);
        t.master_out = nullptr;
        t.out = step_of[static_cast<size_t>(i)];
        return t;
      },
      [&](int i) { return rule_of<A>(p, i); });
  for (int i = 0; i < layout.count; ++i) {
    const device::UpdateTensors<2> t = update_tensors<2>(a, layout, i);
    const void* const from = layout.master ? t.master_in : t.weight;
    on_device::apply_lamb({.weight = from,
                           .step = step_of[static_cast<size_t>(i)],
                           .master_out = t.master_out,
                           .out = t.out,
                           .n = t.size,
                           .lr = p.learning_rates[static_cast<size_t>(i)],
                           .lower_bound = p.lower_bound,
                           .upper_bound = p.upper_bound},
                          layout.master ? DType::kFloat32 : weight, compute, weight);
  }
}

void run_multi(const MultiLambParams& p, const KernelArgs& a, const UpdateLayout& layout) {
  if (device::current()) {
    if (a.in[0].dtype == DType::kFloat64 && !layout.master) return run_multi_on_device<double>(p, a, layout);
    return run_multi_on_device<float>(p, a, layout);
  }
  dispatch_update(a.in[0].dtype, layout.master, [&](auto weight_zero, auto state_zero, auto) {
    using T = decltype(weight_zero);
    using S = decltype(state_zero);
    for (int i = 0; i < layout.count; ++i) {
      const UpdateTensors<2> t = update_tensors<2>(a, layout, i);
      if (layout.master)
        update_tensor<T, S, float>(p, t, t.master_in, t.master_out, i);
      else
        update_tensor<T, S, T>(p, t, static_cast<const T*>(t.weight), nullptr, i);
    }
  });
}

void declare_multi(OpRegistry& ops, const char* name, bool master, Sample sample) {
  auto layout_of = [master](const MultiLambParams& p) { return UpdateLayout{p.num_tensors, 2, master}; };
  ops.declare<MultiLambParams>(name)
      .any_device()
      .doc(master ? "LAMB updates of several tensors at once, on float32 copies of the weights."
                  : "LAMB updates of several tensors at once.")
      .variadic_input(
          "data", "",
          "weight, gradient, mean, var (and float32 weight) of each tensor; all except gradients are replaced")
      .output("weight_out", "updated weights, then the replaced states")
      .num_inputs([layout_of](const MultiLambParams& p) { return layout_of(p).num_inputs(); })
      .num_outputs([layout_of](const MultiLambParams& p) { return layout_of(p).num_outputs(); })
      .num_visible_outputs([](const MultiLambParams& p) { return p.num_tensors; })
      .variadic_inplace(
          [layout_of](const MultiLambParams& p, int output) { return layout_of(p).inplace_input(output); })
      .variadic_writeback(
          [layout_of](const MultiLambParams& p, int output) { return layout_of(p).writeback_input(output); })
      .infer([layout_of](const MultiLambParams& p, InferContext& c) {
        check_per_tensor("learning_rates", p.learning_rates.size(), p.num_tensors);
        check_per_tensor("wds", p.wds.size(), p.num_tensors);
        check_per_tensor("step_count", static_cast<size_t>(p.step_count.ndim()), p.num_tensors);
        infer_updates(c, layout_of(p));
      })
      .cpu([layout_of](const MultiLambParams& p, const KernelArgs& a) { run_multi(p, a, layout_of(p)); }, kUpdateDTypes)
      .gradient(kNotDifferentiable)
      .sample(std::move(sample));
}

}  // namespace

void register_multi_lamb(OpRegistry& ops) {
  const std::vector<std::pair<std::string, std::string>> attrs = {
      {"learning_rates", "(0.1, 0.2)"}, {"wds", "(0, 0.1)"}, {"step_count", "(1, 3)"}, {"num_tensors", "2"}};
  Sample many;
  many.inputs = {{3, 4}, {3, 4}, {3, 4}, {3, 4}, {5}, {5}, {5}, {5}};
  many.attrs = attrs;
  many.low = 0.1;
  declare_multi(ops, "_multi_lamb_update", false, many);
  declare_multi(ops, "_multi_mp_lamb_update", true,
                mixed_sample({{3}, {3}, {3}, {3}, {3}, {2}, {2}, {2}, {2}, {2}}, attrs, 2, 5));
}

}  // namespace hybridnet::ops
