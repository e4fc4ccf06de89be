// Optimizers with a separate learning rate for each element: AdaGrad, AdaDelta, RMSProp, FTRL.
#include "optimizer/rules.h"

namespace hybridnet::optimizer {
namespace {

constexpr char kUsual[] = "lr wd rescale_grad";

std::unique_ptr<Rule> adagrad(const char* name, const char* doc, double eps) {
  auto made = make_rule(name, doc);
  made->schema.field("eps", &Settings::eps).default_value(eps).doc("Added under the root, against division by zero.");
  made->states = [](const Settings&) { return one_state("history"); };
  return made;
}

void build_adagrad(const Settings& s, UpdateBuilder& b) {
  b.update("_sparse_adagrad_update", {b.weight(), b.grad(), b.state(0)}, with_clip(s, {{"epsilon", s.eps}}), kUsual);
}

void build_group_adagrad(const Settings& s, UpdateBuilder& b) {
  b.update("_contrib_group_adagrad_update", {b.weight(), b.grad(), b.state(0)}, with_clip(s, {{"epsilon", s.eps}}),
           "lr rescale_grad");
}

void build_rmsprop(const Settings& s, UpdateBuilder& b) {
  UpdateBuilder::Attributes attributes = with_clip(s, {{"gamma1", s.gamma1}, {"epsilon", s.epsilon}});
  if (s.clip_weights && *s.clip_weights != 0) attributes.emplace_back("clip_weights", *s.clip_weights);
  if (!s.centered) return b.update("rmsprop_update", {b.weight(), b.grad(), b.state(0)}, attributes, kUsual);
  attributes.emplace_back("gamma2", s.gamma2);
  b.update("rmspropalex_update", {b.weight(), b.grad(), b.state(0), b.state(1), b.state(2)}, attributes, kUsual);
}

void build_adadelta(const Settings& s, UpdateBuilder& b) {
  const Term weight = b.weight(), squares = b.state(0), steps = b.state(1), grad = b.scaled_grad(s);
  b.assign(squares, s.rho * squares + (1.0 - s.rho) * grad * grad);
  const Term step = sqrt(steps + s.epsilon) / sqrt(squares + s.epsilon) * grad;
  b.assign(steps, s.rho * steps + (1.0 - s.rho) * step * step);
  b.assign(weight, weight - (step + Rate{"wd"} * weight));
}

void build_ftrl(const Settings& s, UpdateBuilder& b) {
  b.update("ftrl_update", {b.weight(), b.grad(), b.state(0), b.state(1)},
           with_clip(s, {{"lamda1", s.lamda1}, {"beta", s.beta}}), kUsual);
}

}  // namespace

void add_adaptive_rules(RuleList& list) {
  auto plain = adagrad("AdaGrad", "history += g^2; weight -= lr * (g / sqrt(history + eps) + wd * weight).", 1e-7);
  plain->build = build_adagrad;
  list.push_back(std::move(plain));

  auto group = adagrad("GroupAdaGrad", "AdaGrad with one learning rate per row, for embeddings.", 1e-5);
  group->states = [](const Settings&) {
    StateLayout layout = one_state("history");
    layout.items[0]->one_per_row = true;
    return layout;
  };
  group->by_element = false;
  group->build = build_group_adagrad;
  group->rates = [](Settings& s, const UpdateItem& item) -> std::vector<double> {
    if (item.wd != 0) throw ParamError({.message = "Weight decay is not supported for GroupAdaGrad"});
    return {item.lr, item.wd, s.rescale_grad};
  };
  list.push_back(std::move(group));

  auto rmsprop = make_rule("RMSProp", "Divides the gradient by the root of a running mean of its square.", 0.001);
  SettingsSchema& fields = rmsprop->schema;
  fields.field("gamma1", &Settings::gamma1).default_value(0.9).doc("Decay rate of the running means.");
  fields.field("gamma2", &Settings::gamma2).default_value(0.9).doc("Momentum, if centered.");
  fields.field("epsilon", &Settings::epsilon).default_value(1e-8).doc("Added under the root.");
  fields.field("centered", &Settings::centered)
      .default_value(false)
      .doc("Whether the squared running mean of the gradient is subtracted from the running mean of squares.");
  fields.field("clip_weights", &Settings::clip_weights).none_by_default().doc("Bound of the weights after a step.");
  rmsprop->states = [](const Settings& s) { return s.centered ? tuple_of({"n", "g", "delta"}) : tuple_of({"n"}); };
  rmsprop->build = build_rmsprop;
  list.push_back(std::move(rmsprop));

  auto adadelta = make_rule("AdaDelta", "Steps by the ratio of past steps and gradients. Zeiler, arXiv 1212.5701.");
  adadelta->schema.field("rho", &Settings::rho).default_value(0.9).doc("Decay rate of the running means.");
  adadelta->schema.field("epsilon", &Settings::epsilon).default_value(1e-5).doc("Added under the roots.");
  adadelta->states = [](const Settings&) { return tuple_of({"squares", "steps"}); };
  adadelta->build = build_adadelta;
  list.push_back(std::move(adadelta));

  auto ftrl = make_rule("Ftrl", "Follow the regularized leader. McMahan et al., 2013.", 0.1);
  ftrl->schema.field("lamda1", &Settings::lamda1).default_value(0.01).doc("L1 penalty.");
  ftrl->schema.field("beta", &Settings::beta)
      .default_value(1.0)
      .doc("Reduces the learning rate of elements with few gradients.");
  ftrl->states = [](const Settings&) { return tuple_of({"z", "n"}); };
  ftrl->build = build_ftrl;
  list.push_back(std::move(ftrl));
}

}  // namespace hybridnet::optimizer
