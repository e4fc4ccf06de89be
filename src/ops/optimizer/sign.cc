// Steps by the sign of the gradient (Bernstein et al., arXiv 1802.04434).
#include "hybridnet/op.h"
#include "ops/optimizer/declare_update.h"

namespace hybridnet::ops {
namespace {

struct SignSgdParams {
  double lr, wd, rescale_grad, clip_gradient;
  static void describe(ParamSchema<SignSgdParams>& schema) {
    describe_lr<SignSgdParams>(schema);
    describe_wd<SignSgdParams>(schema);
    describe_rescale_clip<SignSgdParams>(schema);
  }
};

struct SignumParams {
  double lr, momentum, wd, rescale_grad, clip_gradient, wd_lh;
  static void describe(ParamSchema<SignumParams>& schema) {
    describe_lr<SignumParams>(schema);
    schema.field("momentum", &SignumParams::momentum).default_value(0.0).doc("Decay rate of the mean of gradients.");
    describe_wd<SignumParams>(schema);
    describe_rescale_clip<SignumParams>(schema);
    schema.field("wd_lh", &SignumParams::wd_lh).default_value(0.0).doc("Weight decay applied after the sign.");
  }
};

template <typename A>
A sign_of(A value) {
  return static_cast<A>((value > A(0)) - (value < A(0)));
}

// rescale_grad and clipping do not change the sign of the gradient.
template <typename A>
struct SignSgdRule {
  static constexpr int kStates = 0;
  A lr, keep;
  template <typename P>
  static SignSgdRule make(const P& p, int) {
    return {static_cast<A>(p.lr), static_cast<A>(1.0 - p.lr * p.wd)};
  }
  A step(A w, A g, A*) const { return keep * w - lr * sign_of(g); }
};

template <typename A>
struct SignumRule {
  static constexpr int kStates = 1;
  A lr, momentum, rest, wd, keep, rescale, bound;
  template <typename P>
  static SignumRule make(const P& p, int) {
    return {static_cast<A>(p.lr),          static_cast<A>(p.momentum),           static_cast<A>(1.0 - p.momentum),
            static_cast<A>(p.wd),          static_cast<A>(1.0 - p.lr * p.wd_lh), static_cast<A>(p.rescale_grad),
            clip_bound<A>(p.clip_gradient)};
  }
  A step(A w, A g, A* mom) const {
    mom[0] = momentum * mom[0] - rest * wd * w - rest * clip_to(rescale * g, bound);
    return keep * w + lr * sign_of(mom[0]);
  }
};

}  // namespace

void register_sign(OpRegistry& ops) {
  declare_update<SignSgdRule, SignSgdParams>(ops, "signsgd_update", {})
      .doc("weight = (1 - lr * wd) * weight - lr * sign(grad)")
      .sample({{3, 4}, {3, 4}}, {{"lr", "0.1"}, {"wd", "0.01"}});
  declare_update<SignumRule, SignumParams>(ops, "signum_update", {"mom"})
      .doc(
          "mom = momentum * mom - (1 - momentum) * (clip(rescale_grad * grad) + wd * weight); weight = (1 - lr * "
          "wd_lh) * weight + lr * "
          "sign(mom)")
      .sample({{3, 4}, {3, 4}, {3, 4}}, {{"lr", "0.1"}, {"wd", "0.01"}, {"momentum", "0.9"}, {"wd_lh", "0.1"}})
      .sample({{5}, {5}, {5}}, {{"lr", "0.1"}, {"clip_gradient", "0.5"}});
}

}  // namespace hybridnet::ops
