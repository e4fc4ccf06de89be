// Rules of gradient descent, and the parameters of the operators for one tensor. See update_math.h.
#pragma once

#include "kernels/functors/update_math.h"

namespace hybridnet::kernels {

struct SgdParams {
  static constexpr const char* kName = "SgdParams";
  double lr, wd, rescale_grad, clip_gradient;
  bool lazy_update;
  static void describe(ParamSchema<SgdParams>& schema);
};

struct SgdMomentumParams {
  static constexpr const char* kName = "SgdMomentumParams";
  double lr, momentum, wd, rescale_grad, clip_gradient;
  bool lazy_update;
  static void describe(ParamSchema<SgdMomentumParams>& schema);
};

struct NagParams {
  static constexpr const char* kName = "NagParams";
  double lr, momentum, wd, rescale_grad, clip_gradient;
  static void describe(ParamSchema<NagParams>& schema);
};

struct SignSgdParams {
  static constexpr const char* kName = "SignSgdParams";
  double lr, wd, rescale_grad, clip_gradient;
  static void describe(ParamSchema<SignSgdParams>& schema);
};

struct SignumParams {
  static constexpr const char* kName = "SignumParams";
  double lr, momentum, wd, rescale_grad, clip_gradient, wd_lh;
  static void describe(ParamSchema<SignumParams>& schema);
};

template <typename A>
struct SgdRule {
  static constexpr int kStates = 0;
  static constexpr const char* kName = "SgdRule";
  static constexpr const char* kHeader = "update_sgd.h";
  A lr, keep, rescale, bound;
  template <typename P>
  static SgdRule make(const P& p, int i) {
    const double lr = lr_of(p, i);
    return {static_cast<A>(lr), static_cast<A>(1.0 - lr * wd_of(p, i)), static_cast<A>(p.rescale_grad),
            clip_bound<A>(p.clip_gradient)};
  }
  template <bool kFma = false>
  A step(A w, A g, A*) const {
    return difference_of_products<kFma>(keep, w, lr, clip_to(rescale * g, bound));
  }
};

template <typename A>
struct SgdMomentumRule {
  static constexpr int kStates = 1;
  static constexpr const char* kName = "SgdMomentumRule";
  static constexpr const char* kHeader = "update_sgd.h";
  A lr, momentum, decay, rescale, bound;
  template <typename P>
  static SgdMomentumRule make(const P& p, int i) {
    const double lr = lr_of(p, i);
    return {static_cast<A>(lr), static_cast<A>(p.momentum), static_cast<A>(lr * wd_of(p, i)),
            static_cast<A>(p.rescale_grad), clip_bound<A>(p.clip_gradient)};
  }
  template <bool kFma = false>
  A step(A w, A g, A* mom) const {
    const A kept = difference_of_products<kFma>(momentum, mom[0], decay, w);
    mom[0] = minus_product<kFma>(kept, lr, clip_to(rescale * g, bound));
    return w + mom[0];
  }
};

template <typename A>
struct NagRule {
  static constexpr int kStates = 1;
  static constexpr const char* kName = "NagRule";
  static constexpr const char* kHeader = "update_sgd.h";
  A lr, momentum, wd, rescale, bound;
  template <typename P>
  static NagRule make(const P& p, int i) {
    return {static_cast<A>(lr_of(p, i)), static_cast<A>(p.momentum), static_cast<A>(wd_of(p, i)),
            static_cast<A>(p.rescale_grad), clip_bound<A>(p.clip_gradient)};
  }
  template <bool kFma = false>
  A step(A w, A g, A* mom) const {
    const A before = mom[0];
    const A slope = product_plus<kFma>(wd, w, clip_to(rescale * g, bound));
    mom[0] = difference_of_products<kFma>(momentum, before, lr, slope);
    return product_plus<kFma>(momentum + A(1), mom[0], minus_product<kFma>(w, momentum, before));
  }
};

// rescale_grad and clipping do not change the sign of the gradient.
template <typename A>
struct SignSgdRule {
  static constexpr int kStates = 0;
  static constexpr const char* kName = "SignSgdRule";
  static constexpr const char* kHeader = "update_sgd.h";
  A lr, keep;
  template <typename P>
  static SignSgdRule make(const P& p, int) {
    return {static_cast<A>(p.lr), static_cast<A>(1.0 - p.lr * p.wd)};
  }
  template <bool kFma = false>
  A step(A w, A g, A*) const {
    return difference_of_products<kFma>(keep, w, lr, sign_of(g));
  }
};

template <typename A>
struct SignumRule {
  static constexpr int kStates = 1;
  static constexpr const char* kName = "SignumRule";
  static constexpr const char* kHeader = "update_sgd.h";
  A lr, momentum, rest, wd, keep, rescale, bound;
  template <typename P>
  static SignumRule make(const P& p, int) {
    return {static_cast<A>(p.lr),          static_cast<A>(p.momentum),           static_cast<A>(1.0 - p.momentum),
            static_cast<A>(p.wd),          static_cast<A>(1.0 - p.lr * p.wd_lh), static_cast<A>(p.rescale_grad),
            clip_bound<A>(p.clip_gradient)};
  }
  template <bool kFma = false>
  A step(A w, A g, A* mom) const {
    const A decayed = difference_of_products<kFma>(momentum, mom[0], rest * wd, w);
    mom[0] = minus_product<kFma>(decayed, rest, clip_to(rescale * g, bound));
    return sum_of_products<kFma>(keep, w, lr, sign_of(mom[0]));
  }
};

}  // namespace hybridnet::kernels
