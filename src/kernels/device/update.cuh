// Updates of optimizers: one launch for a table of tensors, by the rules of kernels/functors/update_*.h. A rule's
// header is included before this one. Bits: those of the CPU's loops (ops/optimizer/update_loop.h), where float32
// tensors without masters have kFma.
#pragma once

#include <cmath>

#include "kernels/device/accumulators.cuh"
#include "kernels/device/update_arguments.h"
#include "kernels/functors/update_math.h"

namespace hybridnet::device {

// The tensor that a block of a launch works on.
template <class Arguments>
__device__ inline int tensor_of(const Arguments& a, int64_t block) {
  int low = 0, high = static_cast<int>(a.count) - 1;
  while (low < high) {
    const int middle = (low + high + 1) / 2;
    if (a.first_block[middle] <= block)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

// ---- the rule of tensor i

template <class Rule, int kCapacity>
__device__ inline Rule rule_from(const GivenRules<Rule, kCapacity>& source, int i) {
  return source.rules[i];
}

struct PreloadedParams {
  double lr, wd, momentum, rescale_grad, clip_gradient;
};
template <class Rule>
__device__ inline Rule rule_from(const PreloadedRules& source, int i) {
  const PreloadedParams p = {source.lrs[source.first + i], source.wds[source.first + i], source.momentum,
                             source.rescale_grad, source.clip_gradient};
  return Rule::make(p, 0);
}

template <class Rule, class P>
__device__ inline Rule rule_from(const RatedRule<P>& source, int) {
  P p = source.params;
  for (int64_t k = 0; k < source.columns; ++k) {
    const RatedField field = source.fields[k];
    if (field.offset < 0) continue;
    char* const to = reinterpret_cast<char*>(&p) + field.offset;
    const double value = source.rates[k];
    if (field.is_integer)
      *reinterpret_cast<int32_t*>(to) = static_cast<int32_t>(value);
    else
      *reinterpret_cast<double*>(to) = value;
  }
  return Rule::make(p, 0);
}

// E: the dtype of the scalars.
template <class Rule, class E, class Arguments>
__device__ inline Rule rule_of(const Arguments& a, int i) {
  Rule rule = rule_from<Rule>(a.source, i);
  if constexpr (kernels::scalars_of < Rule >> 0) {
    double scalars[kernels::scalars_of<Rule>];
    for (int k = 0; k < kernels::scalars_of<Rule>; ++k)
      scalars[k] = convert<double>(*static_cast<const E*>(a.scalars[k]));
    rule = rule.with_scalars(scalars);
  }
  return rule;
}

// ---- the loop. W: weights; G: gradients; S: states; Out: the output; A: the type of the computation.

template <class W, class G, class S, class Out, class A, bool kFma, class Rule, int kStates>
__device__ inline void update_element(const Rule& rule, const UpdateTensors<kStates>& t, int64_t i) {
  A state[kStates + 1];
  for (int k = 0; k < kStates; ++k) state[k] = convert<A>(static_cast<const S*>(t.state_in[k])[i]);
  const A before = t.master_in ? static_cast<A>(t.master_in[i]) : convert<A>(static_cast<const W*>(t.weight)[i]);
  const A w = rule.template step<kFma>(before, convert<A>(static_cast<const G*>(t.grad)[i]), state);
  for (int k = 0; k < kStates; ++k) static_cast<S*>(t.state_out[k])[i] = convert<S>(state[k]);
  if (t.master_out) t.master_out[i] = static_cast<float>(w);
  static_cast<Out*>(t.out)[i] = convert<Out>(w);
}

// Calls f(tensor, begin, end) for the parts of tensors that this block works on.
template <class Arguments, class F>
__device__ inline void for_each_part(const Arguments& a, int64_t elements, const F& f) {
  for (int64_t block = blockIdx.x; block < a.first_block[a.count]; block += gridDim.x) {
    const int i = tensor_of(a, block);
    const int64_t begin = (block - a.first_block[i]) * elements, size = a.tensors[i].size;
    f(i, begin, begin + elements < size ? begin + elements : size);
  }
}

template <class Rule, class W, class G, class S, class Out, class A, class E, bool kFma, class Arguments>
__device__ inline void update(const Arguments& a) {
  if (a.condition && *a.condition == 0) return;
  for_each_part(a, kUpdateBlock, [&](int i, int64_t begin, int64_t end) {
    const Rule rule = rule_of<Rule, E>(a, i);
    for (int64_t k = begin + threadIdx.x; k < end; k += blockDim.x)
      update_element<W, G, S, Out, A, kFma>(rule, a.tensors[i], k);
  });
}

}  // namespace hybridnet::device
