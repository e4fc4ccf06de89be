// The loop that all optimizer updates share: one pass over weight, gradient and states, in place, for one tensor or for
// many.
//
// kernels/functors/update_math.h describes the rules.
#pragma once

#include <algorithm>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "hybridnet/op.h"
#include "hybridnet/threads.h"
#include "kernels/functors/update_math.h"
#include "kernels/index/indices.h"
#include "kernels/isa.h"
#include "ops/optimizer/device_update.h"

namespace hybridnet::ops {

// The number of elements that one core updates per task.
constexpr int64_t kUpdateChunk = 16 << 10;
constexpr double kUpdateNs = 1.2;  // per element, approximately

constexpr DTypeSet kUpdateDTypes = kFloating;

using device::UpdateTensors;
using kernels::clip_bound, kernels::clip_to, kernels::lr_of, kernels::wd_of;

// Arrays are equal or disjoint, so elements are independent, as the pragma requires.
template <typename T, typename S, typename A, bool kMaster, typename Rule>
[[gnu::always_inline]] inline void update_range(const Rule rule, const UpdateTensors<Rule::kStates>& t, int64_t begin,
                                                int64_t end) {
  constexpr int kStates = Rule::kStates;
  const T* const weight = static_cast<const T*>(t.weight);
  const T* const grad = static_cast<const T*>(t.grad);
  T* const out = static_cast<T*>(t.out);
  const float* const master_in = t.master_in;
  float* const master_out = t.master_out;
  const S* in[kStates + 1] = {};
  S* to[kStates + 1] = {};
  for (int k = 0; k < kStates; ++k) {
    in[k] = static_cast<const S*>(t.state_in[k]);
    to[k] = static_cast<S*>(t.state_out[k]);
  }
#pragma GCC ivdep
  for (int64_t i = begin; i < end; ++i) {
    A state[kStates + 1];
    for (int k = 0; k < kStates; ++k) state[k] = static_cast<A>(in[k][i]);
    const A before = kMaster ? static_cast<A>(master_in[i]) : static_cast<A>(weight[i]);
    const A w = rule.step(before, static_cast<A>(grad[i]), state);
    for (int k = 0; k < kStates; ++k) to[k][i] = static_cast<S>(state[k]);
    if constexpr (kMaster) master_out[i] = static_cast<float>(w);
    out[i] = static_cast<T>(w);
  }
}

// The same loop compiled for vectors wider than the baseline's, for the dtype of most training; for the other dtypes
// the size of the code outweighs the time. The choice depends on the machine alone, so results are reproducible.
#if defined(__x86_64__)
template <typename T, typename S, typename A, bool kMaster, typename Rule>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")]] void update_range_avx512(
    const Rule rule, const UpdateTensors<Rule::kStates>& t, int64_t begin, int64_t end) {
  update_range<T, S, A, kMaster>(rule, t, begin, end);
}
template <typename T, typename S, typename A, bool kMaster, typename Rule>
[[gnu::target("avx2,fma,f16c")]] void update_range_avx2(const Rule rule, const UpdateTensors<Rule::kStates>& t,
                                                        int64_t begin, int64_t end) {
  update_range<T, S, A, kMaster>(rule, t, begin, end);
}
#endif

// Updates elements [begin, end) of one tensor. A separate function, so that all operators with this rule share its
// loops.
template <typename T, typename S, typename A, bool kMaster, typename Rule>
[[gnu::noinline]] void update_elements(const Rule& rule, const UpdateTensors<Rule::kStates>& t, int64_t begin,
                                       int64_t end) {
#if defined(__x86_64__)
  if constexpr (std::is_same_v<T, float> && std::is_same_v<S, float> && !kMaster) {
    static const kernels::Isa isa = kernels::isa_in_force().level;
    if (isa >= kernels::Isa::kAvx512) return update_range_avx512<T, S, A, kMaster>(rule, t, begin, end);
    if (isa >= kernels::Isa::kAvx2) return update_range_avx2<T, S, A, kMaster>(rule, t, begin, end);
  }
#endif
  update_range<T, S, A, kMaster>(rule, t, begin, end);
}

// Calls f(T{}, S{}, A{}): types of weights, of states, and of the computation. With a master copy states are float32;
// else they have the weight's dtype.
template <typename F>
void dispatch_update(DType weight, bool master, F&& f) {
  dispatch_floating(weight, [&](auto zero) {
    using T = decltype(zero);
    if (master) return f(zero, float{}, float{});
    f(zero, zero, accumulator_t<T>{});
  });
}

// The positions of the tensors of update i among inputs and outputs. Inputs are interleaved: weight, grad, states,
// master. Outputs are all weights, then all first states, ..., then all masters.
struct UpdateLayout {
  int count = 1, states = 0;
  bool master = false;
  int stride() const { return 2 + states + master; }
  int num_inputs() const { return count * stride(); }
  int num_outputs() const { return count * (1 + states + master); }
  // The input that output k is written back to; -1 for weights.
  int writeback_input(int output) const { return output < count ? -1 : output % count * stride() + 1 + output / count; }
  int inplace_input(int output) const { return output < count ? output * stride() : writeback_input(output); }
};

template <int kStates>
UpdateTensors<kStates> update_tensors(const KernelArgs& a, const UpdateLayout& layout, int i) {
  UpdateTensors<kStates> t{};
  const size_t in = static_cast<size_t>(i * layout.stride()), count = static_cast<size_t>(layout.count);
  const size_t out = static_cast<size_t>(i);
  t.weight = a.in[in].data;
  t.grad = a.in[in + 1].data;
  t.size = a.in[in].size();
  t.out = a.out[out].data;
  for (size_t k = 0; k < kStates; ++k) {
    t.state_in[k] = a.in[in + 2 + k].data;
    t.state_out[k] = a.out[out + (1 + k) * count].data;
  }
  if (layout.master) {
    t.master_in = a.in[in + 2 + kStates].as<float>();
    t.master_out = a.out[out + (1 + kStates) * count].as<float>();
  }
  return t;
}

// Calls update(closure, tensor, begin, end) for ranges that cover all elements of all tensors, on as many cores as pay
// off.
using UpdateRangeFn = void (*)(const void* closure, int tensor, int64_t begin, int64_t end);
void for_each_update_range(const KernelArgs& a, const UpdateLayout& layout, UpdateRangeFn update, const void* closure);

inline on_device::UpdateDTypes update_dtypes(DType weight, bool master) {
  const DType state = master ? DType::kFloat32 : weight;
  return {.weight = weight, .grad = weight, .state = state, .out = weight, .fma = weight == DType::kFloat32 && !master};
}

// run_updates on a device; scalars: what the rules read.
template <int kStates, bool kMaster, typename RuleOf>
void run_updates_on_device(const KernelArgs& a, const UpdateLayout& layout, const RuleOf& rule_of,
                           const TensorRef* scalar) {
  on_device::UpdateDTypes dtypes = update_dtypes(a.in[0].dtype, kMaster);
  if (scalar) dtypes.scalar = scalar->dtype;
  const void* const scalars[2] = {scalar ? scalar->data : nullptr, nullptr};
  const auto run = [&](auto zero) {
    using Rule = decltype(rule_of(zero, 0));
    const auto tensor_of = [&](int i) { return update_tensors<kStates>(a, layout, i); };
    const auto rule = [&](int i) { return rule_of(zero, i); };
    if (layout.count == 1) return on_device::run_given<Rule, 1>(dtypes, 1, scalars, tensor_of, rule);
    constexpr int kCapacity = device::update_capacity<kStates>(sizeof(Rule));
    on_device::run_given<Rule, kCapacity>(dtypes, layout.count, scalars, tensor_of, rule);
  };
  if (dtypes.is_double()) return run(double{});
  run(float{});
}

// Applies rule_of(A{}, i), the rule for tensor i, to every tensor. kMaster: layout.master. scalar: the array of one
// element that rules read on a device (Rule::with_scalars); on the CPU rule_of does that.
template <int kStates, bool kMaster, typename RuleOf>
void run_updates(const KernelArgs& a, const UpdateLayout& layout, RuleOf&& rule_of, const TensorRef* scalar = nullptr) {
  if (device::current()) return run_updates_on_device<kStates, kMaster>(a, layout, rule_of, scalar);
  dispatch_floating(a.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    using S = std::conditional_t<kMaster, float, T>;
    using A = accumulator_t<S>;
    const auto update = [&](int i, int64_t begin, int64_t end) {
      update_elements<T, S, A, kMaster>(rule_of(A{}, i), update_tensors<kStates>(a, layout, i), begin, end);
    };
    using Update = decltype(update);
    for_each_update_range(
        a, layout,
        [](const void* closure, int i, int64_t begin, int64_t end) {
          (*static_cast<const Update*>(closure))(i, begin, end);
        },
        &update);
  });
}

// Infers inputs weight, grad, states, rows and outputs weight and states.
void infer_lazy_update(InferContext& c, int states);

// Returns the checked row numbers. Copies inputs to those outputs that are not updated in place.
kernels::Indices begin_lazy_update(const KernelArgs& a, int states);

// The tensors of row `row`, whose gradient is row `i` of grad. `item`: bytes of an element.
template <int kStates>
UpdateTensors<kStates> row_tensors(const KernelArgs& a, int64_t row, int64_t i, int64_t width, int64_t item) {
  const int64_t at = row * width * item;
  UpdateTensors<kStates> t;
  t.weight = static_cast<const char*>(a.out[0].data) + at;
  t.out = static_cast<char*>(a.out[0].data) + at;
  t.grad = static_cast<const char*>(a.in[1].data) + i * width * item;
  t.size = width;
  for (size_t k = 0; k < kStates; ++k) {
    t.state_out[k] = static_cast<char*>(a.out[1 + k].data) + at;
    t.state_in[k] = t.state_out[k];
  }
  return t;
}

template <template <typename> class Rule, typename P>
void run_lazy_update(const P& p, const KernelArgs& a) {
  constexpr int kStates = Rule<float>::kStates;
  const kernels::Indices rows = begin_lazy_update(a, kStates);
  if (a.in[1].size() == 0) return;
  const int64_t width = a.in[1].size() / rows.size();
  dispatch_floating(a.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    using A = accumulator_t<T>;
    const Rule<A> rule = Rule<A>::make(p, 0);
    parallel_for(rows.size(), kUpdateNs * static_cast<double>(width), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        update_elements<T, T, A, false>(rule, row_tensors<kStates>(a, rows[i], i, width, sizeof(T)), 0, width);
    });
  });
}

// Weights, gradients and updated weights have one dtype. With masters, masters and states are float32, else states have
// the weights' dtype. All tensors of one update have one shape.
void infer_updates(InferContext& c, const UpdateLayout& layout);

// Throws ParamError if a tuple of per-tensor numbers has the wrong length.
void check_per_tensor(const char* name, size_t given, int expected);

}  // namespace hybridnet::ops
