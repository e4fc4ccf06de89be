// Stochastic gradient descent and its relatives.
#include <cmath>

#include "hybridnet/imperative.h"
#include "optimizer/rules.h"

namespace hybridnet::optimizer {
namespace {

constexpr char kUsual[] = "lr wd rescale_grad";

bool has_momentum(const Settings& s, const UpdateBuilder& b, const char* rule) {
  if (s.momentum > 0 && !b.has_state(0))
    throw ParamError({.op = rule,
                      .input = "momentum",
                      .message = "there is no array for the momentum",
                      .because = "momentum was 0 when the state was made",
                      .fix = "set momentum before the first step"});
  return b.has_state(0) && s.momentum > 0;
}

}  // namespace

StateLayout momentum_layout(const Settings& s) { return s.momentum != 0 ? one_state("momentum") : no_state(s); }

void add_momentum(Rule& rule, double value) {
  rule.schema.field("momentum", &Settings::momentum).default_value(value).doc("Decay rate of the sum of steps.");
  rule.states = momentum_layout;
}

void build_descent(const Settings& s, UpdateBuilder& b, const Term& grad, bool momentum_is_rate) {
  UpdateBuilder::Attributes attributes = with_clip(s, {});
  const bool moves = has_momentum(s, b, "SGD");
  if (moves && !momentum_is_rate) attributes.emplace_back("momentum", s.momentum);
  const char* const rates = moves && momentum_is_rate ? "lr wd rescale_grad momentum" : kUsual;
  if (b.uses_native_master()) {
    if (moves)
      b.update("mp_sgd_mom_update", {b.weight(), grad, b.state(0), b.master()}, attributes, rates,
               "multi_mp_sgd_mom_update");
    else
      b.update("mp_sgd_update", {b.weight(), grad, b.master()}, attributes, rates, "multi_mp_sgd_update");
  } else if (moves) {
    b.update("sgd_mom_update", {b.weight(), grad, b.state(0)}, attributes, rates, "multi_sgd_mom_update");
  } else {
    b.update("sgd_update", {b.weight(), grad}, attributes, rates, "multi_sgd_update");
  }
}

namespace {

void build_sgd(const Settings& s, UpdateBuilder& b) { build_descent(s, b, b.grad()); }

void build_nag(const Settings& s, UpdateBuilder& b) {
  if (!has_momentum(s, b, "NAG")) return build_sgd(s, b);
  const UpdateBuilder::Attributes attributes = with_clip(s, {{"momentum", AttrValue(s.momentum)}});
  if (b.uses_native_master())
    b.update("mp_nag_mom_update", {b.weight(), b.grad(), b.state(0), b.master()}, attributes, kUsual);
  else
    b.update("nag_mom_update", {b.weight(), b.grad(), b.state(0)}, attributes, kUsual);
}

void build_signum(const Settings& s, UpdateBuilder& b) {
  UpdateBuilder::Attributes attributes = with_clip(s, {});
  if (!has_momentum(s, b, "Signum")) return b.update("signsgd_update", {b.weight(), b.grad()}, attributes, kUsual);
  attributes.emplace_back("momentum", s.momentum);
  if (s.wd_lh != 0) attributes.emplace_back("wd_lh", s.wd_lh);
  b.update("signum_update", {b.weight(), b.grad(), b.state(0)}, attributes, kUsual);
}

void build_ftml(const Settings& s, UpdateBuilder& b) {
  b.update("ftml_update", {b.weight(), b.grad(), b.state(0), b.state(1), b.state(2)},
           with_clip(s, {{"beta1", s.beta1}, {"beta2", s.beta2}, {"epsilon", s.epsilon}}, "clip_grad"),
           "lr wd rescale_grad t");
}

void build_dcasgd(const Settings& s, UpdateBuilder& b) {
  const Term weight = b.weight(), grad = b.scaled_grad(s), previous = b.state(1);
  Term step = Rate{"minus_lr"} * (grad + Rate{"wd"} * weight + s.lamda * grad * grad * (weight - previous));
  if (b.has_state(0)) {
    step = s.momentum * b.state(0) + step;
    b.assign(b.state(0), step);
  }
  b.assign(previous, weight);
  b.assign(weight, weight + step);
}

void build_sgld(const Settings& s, UpdateBuilder& b) {
  const Term weight = b.weight();
  const Term noise = Rate{"noise"} * b.call("_keyed_normal_like", {weight, b.rates()});
  b.assign(weight, weight + (noise - Rate{"half_lr"} * (b.scaled_grad(s) + Rate{"wd"} * weight)));
}

void build_test(const Settings&, UpdateBuilder& b) {
  b.assign(b.weight(), b.weight() + Rate{"rescale_grad"} * b.grad());
  b.assign(b.state(0), b.weight());
}

std::unique_ptr<Rule> sgd(const char* name, const char* doc) {
  auto made = make_rule(name, doc);
  add_momentum(*made);
  made->schema.field("lazy_update", &Settings::lazy_update)
      .default_value(true)
      .doc("Whether a row_sparse gradient changes its own rows only.");
  made->aggregates = made->native_master = made->lazy = true;
  made->build = build_sgd;
  return made;
}

}  // namespace

void add_descent_rules(RuleList& list) {
  list.push_back(sgd("SGD", "mom = momentum * mom - lr * (clip(rescale * grad) + wd * weight); weight += mom."));
  list.push_back(sgd("ccSGD", "SGD under an old name."));

  auto nag = make_rule("NAG", "Nesterov momentum. Sutskever et al., 2013.");
  add_momentum(*nag);
  nag->native_master = true;
  nag->build = build_nag;
  list.push_back(std::move(nag));

  auto signum = make_rule("Signum", "Steps by the sign of the momentum. Bernstein et al., arXiv 1802.04434.");
  add_momentum(*signum, 0.9);
  signum->schema.field("wd_lh", &Settings::wd_lh)
      .default_value(0.0)
      .doc("Weight decay that is applied after the sign.");
  signum->build = build_signum;
  list.push_back(std::move(signum));

  auto ftml = make_rule("FTML", "Follow the moving leader. Zheng and Kwok, ICML 2017.");
  ftml->schema.field("beta1", &Settings::beta1).default_value(0.6).doc("Decay rate of the leader.");
  ftml->schema.field("beta2", &Settings::beta2).default_value(0.999).doc("Decay rate of squared gradients.");
  ftml->schema.field("epsilon", &Settings::epsilon).default_value(1e-8).doc("Against division by zero.");
  ftml->columns = {"lr", "wd", "rescale_grad", "t"};
  ftml->states = [](const Settings&) { return tuple_of({"d", "v", "z"}); };
  ftml->build = build_ftml;
  list.push_back(std::move(ftml));

  auto dcasgd = make_rule("DCASGD", "SGD that compensates delayed gradients. Zheng et al., arXiv 1609.08326.");
  add_momentum(*dcasgd);
  dcasgd->schema.field("lamda", &Settings::lamda).default_value(0.04).doc("Factor of the correction.");
  dcasgd->columns = {"minus_lr", "wd", "rescale_grad"};
  dcasgd->states = [](const Settings& s) {
    StateLayout layout = tuple_of({"momentum", "previous"});
    if (s.momentum == 0) layout.items[0].reset();
    layout.items[1]->copy_of_weight = true;
    return layout;
  };
  dcasgd->build = build_dcasgd;
  dcasgd->rates = [](Settings& s, const UpdateItem& item) -> std::vector<double> {
    return {-item.lr, item.wd, s.rescale_grad};
  };
  list.push_back(std::move(dcasgd));

  auto sgld = make_rule("SGLD", "Half a step of SGD plus noise of variance lr. Patterson and Teh, 2013.");
  // The last four columns are the key of the noise: 64-bit numbers in halves, which a double represents exactly.
  sgld->columns = {"noise", "half_lr", "wd", "rescale_grad", "seed_high", "seed_low", "stream_high", "stream_low"};
  sgld->draws = true;
  sgld->build = build_sgld;
  sgld->rates = [](Settings& s, const UpdateItem& item) -> std::vector<double> {
    const RngKey key = next_rng_key();
    const auto high = [](uint64_t bits) { return static_cast<double>(bits >> 32); };
    const auto low = [](uint64_t bits) { return static_cast<double>(bits & 0xffffffffu); };
    return {std::sqrt(item.lr), item.lr / 2,   item.wd,          s.rescale_grad,
            high(key.seed),     low(key.seed), high(key.stream), low(key.stream)};
  };
  list.push_back(std::move(sgld));

  auto test = make_rule("Test", "Adds the rescaled gradient; for tests of key-value stores.");
  test->states = [](const Settings&) { return one_state("weight"); };
  test->build = build_test;
  list.push_back(std::move(test));
}

}  // namespace hybridnet::optimizer
