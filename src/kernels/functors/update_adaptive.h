// Rules of RMSProp, AdaGrad, FTRL and FTML, and the parameters of their operators. See update_math.h.
#pragma once

#include "kernels/functors/update_math.h"

namespace hybridnet::kernels {

struct RmsPropParams {
  static constexpr const char* kName = "RmsPropParams";
  double lr, gamma1, epsilon, wd, rescale_grad, clip_gradient, clip_weights;
  static void describe(ParamSchema<RmsPropParams>& schema);
};

struct CenteredParams {
  static constexpr const char* kName = "CenteredParams";
  double lr, gamma1, gamma2, epsilon, wd, rescale_grad, clip_gradient, clip_weights;
  static void describe(ParamSchema<CenteredParams>& schema);
};

struct AdagradParams {
  static constexpr const char* kName = "AdagradParams";
  double lr, epsilon, wd, rescale_grad, clip_gradient;
  static void describe(ParamSchema<AdagradParams>& schema);
};

struct FtrlParams {
  static constexpr const char* kName = "FtrlParams";
  double lr, lamda1, beta, wd, rescale_grad, clip_gradient;
  static void describe(ParamSchema<FtrlParams>& schema);
};

struct FtmlParams {
  static constexpr const char* kName = "FtmlParams";
  double lr, beta1, beta2, epsilon;
  int32_t t;
  double wd, rescale_grad, clip_grad;
  static void describe(ParamSchema<FtmlParams>& schema);
};

template <typename A>
struct RmsPropRule {
  static constexpr int kStates = 1;
  static constexpr const char* kName = "RmsPropRule";
  static constexpr const char* kHeader = "update_adaptive.h";
  A lr, keep, rest, epsilon, wd, rescale, bound, weight_bound;
  template <typename P>
  static RmsPropRule make(const P& p, int) {
    return {static_cast<A>(p.lr),           static_cast<A>(p.gamma1),     A(1) - static_cast<A>(p.gamma1),
            static_cast<A>(p.epsilon),      static_cast<A>(p.wd),         static_cast<A>(p.rescale_grad),
            clip_bound<A>(p.clip_gradient), clip_bound<A>(p.clip_weights)};
  }
  template <bool kFma = false>
  A step(A w, A g, A* state) const {
    const A grad = clip_to(sum_of_products<kFma>(rescale, g, wd, w), bound);
    state[0] = sum_of_products<kFma>(rest, grad * grad, keep, state[0]);
    return clip_to(minus_product<kFma>(w, lr, grad / std::sqrt(state[0] + epsilon)), weight_bound);
  }
};

template <typename A>
struct CenteredRule {
  static constexpr int kStates = 3;
  static constexpr const char* kName = "CenteredRule";
  static constexpr const char* kHeader = "update_adaptive.h";
  A lr, keep, rest, momentum, epsilon, wd, rescale, bound, weight_bound;
  template <typename P>
  static CenteredRule make(const P& p, int) {
    return {static_cast<A>(p.lr),           static_cast<A>(p.gamma1),       A(1) - static_cast<A>(p.gamma1),
            static_cast<A>(p.gamma2),       static_cast<A>(p.epsilon),      static_cast<A>(p.wd),
            static_cast<A>(p.rescale_grad), clip_bound<A>(p.clip_gradient), clip_bound<A>(p.clip_weights)};
  }
  template <bool kFma = false>
  A step(A w, A g, A* state) const {
    const A grad = clip_to(sum_of_products<kFma>(rescale, g, wd, w), bound);
    const A part = rest * grad;  // it is used twice, so the compiler merges no sum with it
    state[0] = sum_of_products<kFma>(part, grad, keep, state[0]);
    state[1] = product_plus<kFma>(keep, state[1], part);
    const A variance = minus_product<kFma>(state[0], state[1], state[1]) + epsilon;
    state[2] = product_minus<kFma>(momentum, state[2], lr * grad / std::sqrt(variance));
    return clip_to(w + state[2], weight_bound);
  }
};

template <typename A>
struct AdagradRule {
  static constexpr int kStates = 1;
  static constexpr const char* kName = "AdagradRule";
  static constexpr const char* kHeader = "update_adaptive.h";
  A lr, epsilon, wd, rescale, bound;
  template <typename P>
  static AdagradRule make(const P& p, int) {
    return {static_cast<A>(p.lr), static_cast<A>(p.epsilon), static_cast<A>(p.wd), static_cast<A>(p.rescale_grad),
            clip_bound<A>(p.clip_gradient)};
  }
  template <bool kFma = false>
  A step(A w, A g, A* history) const {
    const A grad = clip_to(rescale * g, bound);
    history[0] = product_plus<kFma>(grad, grad, history[0]);
    return minus_product<kFma>(w, lr, product_plus<kFma>(wd, w, grad / std::sqrt(history[0] + epsilon)));
  }
};

template <typename A>
struct FtrlRule {
  static constexpr int kStates = 2;  // z, n
  static constexpr const char* kName = "FtrlRule";
  static constexpr const char* kHeader = "update_adaptive.h";
  A lr, lamda1, beta, wd, rescale, bound;
  template <typename P>
  static FtrlRule make(const P& p, int) {
    return {static_cast<A>(p.lr), static_cast<A>(p.lamda1),       static_cast<A>(p.beta),
            static_cast<A>(p.wd), static_cast<A>(p.rescale_grad), clip_bound<A>(p.clip_gradient)};
  }
  template <bool kFma = false>
  A step(A w, A g, A* state) const {
    const A grad = clip_to(g * rescale, bound);
    const A n = product_plus<kFma>(grad, grad, state[1]);
    const A z = state[0] + grad - (std::sqrt(n) - std::sqrt(state[1])) * w / lr;
    state[0] = z;
    state[1] = n;
    const A sign = z > A(0) ? A(1) : A(-1);
    if (!(std::fabs(z) > lamda1)) return A(0);
    return product_minus<kFma>(sign, lamda1, z) / ((beta + std::sqrt(n)) / lr + wd);
  }
};

template <typename A>
struct FtmlRule {
  static constexpr int kStates = 3;  // d, v, z
  static constexpr const char* kName = "FtmlRule";
  static constexpr const char* kHeader = "update_adaptive.h";
  A lr, beta1, beta2, epsilon, rest1, rest2, wd, rescale, bound;
  template <typename P>
  static FtmlRule make(const P& p, int) {
    return {static_cast<A>(p.lr),
            static_cast<A>(p.beta1),
            static_cast<A>(p.beta2),
            static_cast<A>(p.epsilon),
            static_cast<A>(1.0 - std::pow(p.beta1, p.t)),
            static_cast<A>(1.0 - std::pow(p.beta2, p.t)),
            static_cast<A>(p.wd),
            static_cast<A>(p.rescale_grad),
            clip_bound<A>(p.clip_grad)};
  }
  template <bool kFma = false>
  A step(A w, A g, A* state) const {
    const A grad = clip_to(sum_of_products<kFma>(rescale, g, wd, w), bound);
    state[1] = sum_of_products<kFma>(beta2, state[1], (A(1) - beta2) * grad, grad);
    const A d = rest1 / lr * (std::sqrt(state[1] / rest2) + epsilon);
    const A leader = sum_of_products<kFma>(beta1, state[2], A(1) - beta1, grad);
    state[2] = minus_product<kFma>(leader, minus_product<kFma>(d, beta1, state[0]), w);
    state[0] = d;
    return -state[2] / d;
  }
};

}  // namespace hybridnet::kernels
