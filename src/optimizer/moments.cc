// Adam and related optimizers: running means of the gradient and of its square.
#include <cmath>

#include "optimizer/rules.h"

namespace hybridnet::optimizer {
namespace {

std::unique_ptr<Rule> with_moments(const char* name, const char* doc, double lr = 0.001, double epsilon = 1e-8) {
  auto made = make_rule(name, doc, lr);
  made->schema.field("beta1", &Settings::beta1).default_value(0.9).doc("Decay rate of the mean of gradients.");
  made->schema.field("beta2", &Settings::beta2)
      .default_value(0.999)
      .doc("Decay rate of the mean of squared gradients.");
  if (epsilon > 0)
    made->schema.field("epsilon", &Settings::epsilon)
        .default_value(epsilon)
        .doc("Added to the root, against division by zero.");
  made->states = [](const Settings&) { return tuple_of({"mean", "variance"}); };
  return made;
}

// The learning rate times the bias correction of both moments (Adam paper, end of section 2).
double corrected(const Settings& s, const UpdateItem& item) {
  const auto t = static_cast<double>(item.t);
  return item.lr * std::sqrt(1.0 - std::pow(s.beta2, t)) / (1.0 - std::pow(s.beta1, t));
}

UpdateBuilder::Attributes moment_attributes(const Settings& s) {
  return {{"beta1", s.beta1}, {"beta2", s.beta2}, {"epsilon", s.epsilon}};
}

void build_adam(const Settings& s, UpdateBuilder& b) {
  b.update("adam_update", {b.weight(), b.grad(), b.state(0), b.state(1)}, with_clip(s, moment_attributes(s)),
           "lr wd rescale_grad", "_multi_adam_update");
}

void build_adamw(const Settings& s, UpdateBuilder& b) {
  const Term rescale = b.call("_full", {}, {{"shape", AttrValue(Shape({1}))}, {"dtype", dtype_name(b.dtype())}},
                              {{"value", "rescale_grad"}});
  UpdateBuilder::Attributes attributes = with_clip(s, moment_attributes(s));
  attributes.emplace_back("eta", 1.0);
  b.update("_adamw_update", {b.weight(), b.grad(), b.state(0), b.state(1), rescale}, attributes, "lr wd",
           "_multi_adamw_update");
}

void build_adamax(const Settings& s, UpdateBuilder& b) {
  const Term weight = b.weight(), mean = b.state(0), largest = b.state(1);
  const Term grad = b.clipped(Rate{"rescale_grad"} * b.grad() + Rate{"wd"} * weight, s);
  b.assign(mean, s.beta1 * mean + (1.0 - s.beta1) * grad);
  b.assign(largest, b.call("broadcast_maximum", {s.beta2 * largest, b.call("abs", {grad})}));
  // The smallest float avoids 0 / 0: a weight whose gradients were all zero does not change.
  const Term divisor = b.call("_maximum_scalar", {largest}, {{"scalar", 1.2e-38}});
  b.assign(weight, weight - Rate{"lr"} * mean / divisor);
}

void build_nadam(const Settings& s, UpdateBuilder& b) {
  const Term weight = b.weight(), mean = b.state(0), variance = b.state(1);
  const Term grad = b.clipped(Rate{"rescale_grad"} * b.grad() + Rate{"wd"} * weight, s);
  b.assign(mean, s.beta1 * mean + (1.0 - s.beta1) * grad);
  b.assign(variance, s.beta2 * variance + (1.0 - s.beta2) * grad * grad);
  const Term ahead = Rate{"grad_share"} * grad + Rate{"mean_share"} * mean;
  b.assign(weight, weight - Rate{"lr"} * ahead / (sqrt(variance / Rate{"variance_share"}) + s.epsilon));
}

std::vector<double> nadam_rates(Settings& s, const UpdateItem& item) {
  const auto t = static_cast<double>(item.t);
  const auto momentum = [&](double step) { return s.beta1 * (1.0 - 0.5 * std::pow(0.96, step * s.schedule_decay)); };
  const double now = momentum(t), following = momentum(t + 1);
  s.m_schedule *= now;  // one schedule for the updates of all weights, which follows MXNet
  return {item.lr,
          item.wd,
          s.rescale_grad,
          (1.0 - now) / (1.0 - s.m_schedule),
          following / (1.0 - s.m_schedule * following),
          1.0 - std::pow(s.beta2, t)};
}

void build_lamb(const Settings& s, UpdateBuilder& b) {
  UpdateBuilder::Attributes attributes = with_clip(s, moment_attributes(s));
  attributes.emplace_back("bias_correction", s.bias_correction);
  const Term step =
      b.step("lamb_update_phase1", {b.weight(), b.grad(), b.state(0), b.state(1)}, attributes, "wd rescale_grad t");
  const auto norm = [&](const Term& value) {
    return b.call("Reshape", {b.call("norm", {value})}, {{"shape", AttrValue(Shape({1}))}});
  };
  const Term of_weight = norm(b.weight()), of_step = norm(step);
  UpdateBuilder::Attributes bounds;
  if (s.lower_bound && *s.lower_bound != 0) bounds.emplace_back("lower_bound", *s.lower_bound);
  if (s.upper_bound && *s.upper_bound != 0) bounds.emplace_back("upper_bound", *s.upper_bound);
  b.update("lamb_update_phase2", {b.weight(), step, of_weight, of_step}, bounds, "lr");
}

}  // namespace

void add_moment_rules(RuleList& list) {
  auto adam = with_moments("Adam", "Steps by the mean of the gradient over the root of its variance. arXiv 1412.6980.");
  adam->schema.field("lazy_update", &Settings::lazy_update)
      .default_value(true)
      .doc("Whether a row_sparse gradient changes its own rows only.");
  adam->aggregates = adam->lazy = true;
  adam->build = build_adam;
  adam->rates = [](Settings& s, const UpdateItem& item) -> std::vector<double> {
    return {corrected(s, item), item.wd, s.rescale_grad};
  };
  list.push_back(std::move(adam));

  auto adamw = with_moments("AdamW", "Adam with decoupled weight decay. arXiv 1711.05101, algorithm 2.", 0.001, 1e-6);
  adamw->schema.field("correct_bias", &Settings::correct_bias)
      .default_value(true)
      .doc("Whether the bias of the moments is corrected.");
  adamw->aggregates = true;
  adamw->build = build_adamw;
  adamw->rates = [](Settings& s, const UpdateItem& item) -> std::vector<double> {
    // The operator steps by eta * (lr * m / (sqrt(v) + epsilon) + wd * weight); the decay uses the uncorrected rate.
    return {s.correct_bias ? corrected(s, item) : item.lr, item.lr * item.wd, s.rescale_grad};
  };
  list.push_back(std::move(adamw));

  auto adamax = with_moments("Adamax", "Adam with the largest gradient in place of its variance. arXiv 1412.6980, 7.1.",
                             0.002, 0);
  adamax->build = build_adamax;
  adamax->rates = [](Settings& s, const UpdateItem& item) -> std::vector<double> {
    return {item.lr / (1.0 - std::pow(s.beta1, static_cast<double>(item.t))), item.wd, s.rescale_grad};
  };
  list.push_back(std::move(adamax));

  auto nadam = with_moments("Nadam", "Adam with Nesterov momentum. Dozat, 2016.");
  nadam->schema.field("schedule_decay", &Settings::schedule_decay)
      .default_value(0.004)
      .doc("Decay of the momentum's schedule.");
  nadam->schema.field("m_schedule", &Settings::m_schedule).default_value(1.0).doc("Product of the momenta so far.");
  nadam->variables = {"m_schedule"};
  nadam->columns = {"lr", "wd", "rescale_grad", "grad_share", "mean_share", "variance_share"};
  nadam->build = build_nadam;
  nadam->rates = nadam_rates;
  list.push_back(std::move(nadam));

  auto lamb = with_moments("LAMB", "Adam whose steps are scaled by layer. You et al., arXiv 1904.00962.", 0.001, 1e-6);
  lamb->schema.field("lower_bound", &Settings::lower_bound)
      .none_by_default()
      .doc("Lower bound of the norm of a weight.");
  lamb->schema.field("upper_bound", &Settings::upper_bound)
      .none_by_default()
      .doc("Upper bound of the norm of a weight.");
  lamb->schema.field("bias_correction", &Settings::bias_correction)
      .default_value(true)
      .doc("Whether the bias of the moments is corrected.");
  lamb->by_element = false;
  lamb->columns = {"lr", "wd", "rescale_grad", "t"};
  lamb->build = build_lamb;
  list.push_back(std::move(lamb));
}

}  // namespace hybridnet::optimizer
