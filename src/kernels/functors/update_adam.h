// Rules of Adam and its relatives, and the parameters of the operators for one tensor. See update_math.h.
#pragma once

#include "kernels/functors/update_math.h"

namespace hybridnet::kernels {

struct AdamParams {
  static constexpr const char* kName = "AdamParams";
  double lr, beta1, beta2, epsilon, wd, rescale_grad, clip_gradient;
  bool lazy_update;
  static void describe(ParamSchema<AdamParams>& schema);
};

struct AdamWParams {
  static constexpr const char* kName = "AdamWParams";
  static constexpr int num_weights = 1;
  double lr, beta1, beta2, epsilon, wd, eta, clip_gradient;
  static void describe(ParamSchema<AdamWParams>& schema);
};

struct LambStepParams {
  static constexpr const char* kName = "LambStepParams";
  double beta1, beta2, epsilon;
  int32_t t;
  bool bias_correction;
  double wd, rescale_grad, clip_gradient;
  static void describe(ParamSchema<LambStepParams>& schema);
};

struct LambApplyParams {
  static constexpr const char* kName = "LambApplyParams";
  double lr, lower_bound, upper_bound;
  static void describe(ParamSchema<LambApplyParams>& schema);
};

template <typename A>
struct AdamRule {
  static constexpr int kStates = 2;
  static constexpr const char* kName = "AdamRule";
  static constexpr const char* kHeader = "update_adam.h";
  A lr, wd, beta1, rest1, beta2, rest2, epsilon, rescale, bound;
  template <typename P>
  static AdamRule make(const P& p, int i) {
    return {static_cast<A>(lr_of(p, i)),    static_cast<A>(wd_of(p, i)),    static_cast<A>(p.beta1),
            A(1) - static_cast<A>(p.beta1), static_cast<A>(p.beta2),        A(1) - static_cast<A>(p.beta2),
            static_cast<A>(p.epsilon),      static_cast<A>(p.rescale_grad), clip_bound<A>(p.clip_gradient)};
  }
  template <bool kFma = false>
  A step(A w, A g, A* state) const {
    const A grad = clip_to(sum_of_products<kFma>(g, rescale, w, wd), bound);
    state[0] = sum_of_products<kFma>(beta1, state[0], rest1, grad);
    state[1] = sum_of_products<kFma>(beta2, state[1], rest2 * grad, grad);
    return w - lr * state[0] / (std::sqrt(state[1]) + epsilon);
  }
};

template <typename A>
struct AdamWRule {
  static constexpr int kStates = 2, kScalars = 1;
  static constexpr const char* kName = "AdamWRule";
  static constexpr const char* kHeader = "update_adam.h";
  A rate, beta1, rest1, beta2, rest2, epsilon, keep, rescale, bound;
  bool skip;
  template <typename P>
  static AdamWRule make(const P& p, int i) {
    double eta = 0;
    if constexpr (has_lists<P>)
      eta = p.etas[static_cast<size_t>(i)];
    else
      eta = p.eta;
    return {static_cast<A>(eta * lr_of(p, i)),       static_cast<A>(p.beta1),
            A(1) - static_cast<A>(p.beta1),          static_cast<A>(p.beta2),
            A(1) - static_cast<A>(p.beta2),          static_cast<A>(p.epsilon),
            static_cast<A>(1.0 - eta * wd_of(p, i)), A(1),
            clip_bound<A>(p.clip_gradient),          false};
  }
  // The scalar is the factor of the gradient.
  AdamWRule with_scalars(const double* factor) const {
    AdamWRule rule = *this;
    rule.rescale = static_cast<A>(*factor);
    rule.skip = !std::isfinite(*factor) || *factor == 0.0;
    return rule;
  }
  template <bool kFma = false>
  A step(A w, A g, A* state) const {
    if (skip) return w;
    const A grad = clip_to(g * rescale, bound);
    state[0] = sum_of_products<kFma>(beta1, state[0], rest1, grad);
    state[1] = sum_of_products<kFma>(beta2, state[1], rest2 * grad, grad);
    return product_minus<kFma>(keep, w, rate * state[0] / (std::sqrt(state[1]) + epsilon));
  }
};

// step() returns the direction, not the new weight.
template <typename A>
struct LambRule {
  static constexpr int kStates = 2;
  static constexpr const char* kName = "LambRule";
  static constexpr const char* kHeader = "update_adam.h";
  A wd, beta1, rest1, beta2, rest2, correct1, correct2, epsilon, rescale, bound;
  template <typename P>
  static LambRule make(const P& p, double wd, double t) {
    return {static_cast<A>(wd),
            static_cast<A>(p.beta1),
            A(1) - static_cast<A>(p.beta1),
            static_cast<A>(p.beta2),
            A(1) - static_cast<A>(p.beta2),
            static_cast<A>(p.bias_correction ? 1.0 / (1.0 - std::pow(p.beta1, t)) : 1.0),
            static_cast<A>(p.bias_correction ? 1.0 / (1.0 - std::pow(p.beta2, t)) : 1.0),
            static_cast<A>(p.epsilon),
            static_cast<A>(p.rescale_grad),
            clip_bound<A>(p.clip_gradient)};
  }
  static LambRule make(const LambStepParams& p, int) { return make(p, p.wd, static_cast<double>(p.t)); }
  template <bool kFma = false>
  A step(A w, A g, A* state) const {
    const A grad = clip_to(g * rescale, bound);
    state[0] = sum_of_products<kFma>(beta1, state[0], rest1, grad);
    state[1] = sum_of_products<kFma>(beta2, state[1], rest2 * grad, grad);
    return product_plus<kFma>(wd, w, state[0] * correct1 / (std::sqrt(state[1] * correct2) + epsilon));
  }
};

// Learning rate times the ratio of norms, which is 1 if one of them is zero. Negative bounds: none.
inline double trusted_rate(double lr, double weight_norm, double step_norm, double lower_bound, double upper_bound) {
  if (lower_bound >= 0) weight_norm = weight_norm < lower_bound ? lower_bound : weight_norm;
  if (upper_bound >= 0) weight_norm = upper_bound < weight_norm ? upper_bound : weight_norm;
  return weight_norm == 0.0 || step_norm == 0.0 ? lr : lr * weight_norm / step_norm;
}

// The second half of LAMB: the "gradient" is the step. Scalars: the norms of the weight and of the step.
template <typename A>
struct LambApplyRule {
  static constexpr int kStates = 0, kScalars = 2;
  static constexpr const char* kName = "LambApplyRule";
  static constexpr const char* kHeader = "update_adam.h";
  double lr, lower_bound, upper_bound;
  A rate;
  template <typename P>
  static LambApplyRule make(const P& p, int) {
    return {p.lr, p.lower_bound, p.upper_bound, A(0)};
  }
  LambApplyRule with_scalars(const double* norms) const {
    LambApplyRule rule = *this;
    rule.rate = static_cast<A>(lr * trusted_rate(1.0, norms[0], norms[1], lower_bound, upper_bound));
    return rule;
  }
  template <bool kFma = false>
  A step(A w, A g, A*) const {
    return minus_product<kFma>(w, rate, g);
  }
};

}  // namespace hybridnet::kernels
