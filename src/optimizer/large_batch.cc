// SGD for large batches: learning rates that depend on norms of layers, and batches accumulated over several updates.
#include <algorithm>
#include <cmath>

#include "optimizer/rules.h"

namespace hybridnet::optimizer {
namespace {

// ---------------------------------------------------------------------------------------------------------------- LARS

bool ends_with_any(std::string_view name, std::initializer_list<const char*> ends) {
  return std::any_of(ends.begin(), ends.end(), [&](const char* end) { return name.ends_with(end); });
}

// 1 if the step of the weight is scaled by layer, 0 for a plain step.
int64_t is_scaled(const Settings&, std::string_view weight, int64_t) {
  return ends_with_any(weight, {"gamma", "beta", "bias"}) ? 0 : 1;
}

void begin_lars(Settings& s, double base_lr) {
  if (s.momentum <= 0) return;
  s.last_lr = s.cur_lr ? s.cur_lr : base_lr;
  s.cur_lr = base_lr;
}

std::vector<double> lars_rates(Settings& s, const UpdateItem& item) {
  const bool corrected = s.momentum_correction && s.last_lr && s.cur_lr && *s.last_lr != 0;
  return {item.lr, item.wd, s.rescale_grad, corrected ? s.momentum * *s.cur_lr / *s.last_lr : s.momentum};
}

void build_lars(const Settings& s, UpdateBuilder& b) {
  if (b.subject().variant != 0)
    b.use_rates(b.call("_layer_rates", {b.weight(), b.grad(), b.rates()}, {{"eta", s.eta}, {"eps", s.eps}}));
  build_descent(s, b, b.grad(), true);
}

std::unique_ptr<Rule> lars() {
  auto made = make_rule("LARS", "SGD whose steps are scaled by layer. You et al., arXiv 1708.03888.");
  add_momentum(*made);
  SettingsSchema& fields = made->schema;
  fields.field("lazy_update", &Settings::lazy_update).default_value(true).doc("Has no effect.");
  fields.field("eta", &Settings::eta).default_value(0.001).doc("Factor of the ratio of norms.");
  fields.field("eps", &Settings::eps).default_value(0.0).doc("Added to the denominator of the ratio.");
  fields.field("momentum_correction", &Settings::momentum_correction)
      .default_value(true)
      .doc("Whether momentum is scaled with changes of the learning rate.");
  fields.field("last_lr", &Settings::last_lr).none_by_default().doc("Learning rate of the step before the last.");
  fields.field("cur_lr", &Settings::cur_lr).none_by_default().doc("Learning rate of the last step.");
  made->variables = {"last_lr", "cur_lr"};
  made->columns = {"lr", "wd", "rescale_grad", "momentum"};
  made->aggregates = made->native_master = true;
  made->by_element = false;
  made->variant = is_scaled;
  made->begin = begin_lars;
  made->rates = lars_rates;
  made->build = build_lars;
  return made;
}

// --------------------------------------------------------------------------------------------------------------- LBSGD

// Number of gradients so far, including those of the epochs before begin_epoch.
int64_t count_of(const Settings& s, int64_t t) { return s.begin_epoch * s.updates_per_epoch + t - s.begin_num_update; }

// Whether an update ends a large batch; other updates only add their gradient.
int64_t ends_batch(const Settings& s, std::string_view, int64_t t) { return count_of(s, t) % s.batch_scale == 0; }

double warm_up(const Settings& s, int64_t count) {
  const int64_t steps = s.warmup_epochs * s.updates_per_epoch;
  const auto largest = static_cast<double>(s.batch_scale);
  if (count >= steps) return largest;
  if (steps <= 1) return 1.0;
  const double part = static_cast<double>(count) / static_cast<double>(steps);
  double share = 0;
  if (s.warmup_strategy == "linear") share = part;
  if (s.warmup_strategy == "power2") share = part * part;
  if (s.warmup_strategy == "sqrt") share = std::sqrt(part);
  return 1.0 + (largest - 1) * share;
}

std::vector<double> lbsgd_rates(Settings& s, const UpdateItem& item) {
  const double factor = s.warmup_strategy == "lars" ? 1.0 : warm_up(s, count_of(s, item.t));
  return {item.lr * factor, item.wd, s.rescale_grad};
}

void build_lbsgd(const Settings& s, UpdateBuilder& b) {
  const auto use_layer_rates = [&](const Term& grad) {
    if (s.warmup_strategy == "lars")
      b.use_rates(b.call("_layer_rates", {b.weight(), grad, b.rates()}, {{"method", "lbsgd"}}));
  };
  if (s.batch_scale <= 1) {
    use_layer_rates(b.grad());
    return build_descent(s, b, b.grad());
  }
  const Term total = b.state(1);
  const bool casts = b.uses_native_master();
  b.assign(total, total + (casts ? b.call("Cast", {b.grad()}, {{"dtype", "float32"}}) : b.grad()));
  if (b.subject().variant == 0) return;
  const Term mean = total / static_cast<double>(s.batch_scale);
  use_layer_rates(mean);
  build_descent(s, b, casts ? b.call("Cast", {mean}, {{"dtype", dtype_name(b.dtype())}}) : mean);
  b.assign(total, b.call("zeros_like", {total}));
}

std::unique_ptr<Rule> lbsgd() {
  auto made = make_rule(
      "LBSGD", "SGD that averages the gradients of batch_scale steps and increases the learning rate in a warm-up.");
  add_momentum(*made);
  SettingsSchema& fields = made->schema;
  fields.field("warmup_strategy", &Settings::warmup_strategy)
      .default_value("linear")
      .doc("Growth of the learning rate: 'linear', 'power2', 'sqrt'; 'lars': by the ratio of norms.");
  // The bounds ensure that products of two values fit into 64 bits.
  fields.field("warmup_epochs", &Settings::warmup_epochs)
      .default_value(5)
      .range(0, 1e9)
      .doc("Number of epochs in which the learning rate grows.");
  fields.field("batch_scale", &Settings::batch_scale)
      .default_value(1)
      .at_least(1)
      .doc("Number of steps of a large batch.");
  fields.field("updates_per_epoch", &Settings::updates_per_epoch)
      .default_value(32)
      .range(0, 1e9)
      .doc("Number of steps of an epoch.");
  fields.field("begin_epoch", &Settings::begin_epoch)
      .default_value(0)
      .range(0, 1e9)
      .doc("Number of epochs before the first step.");
  fields.field("num_epochs", &Settings::num_epochs).default_value(60).range(0, 1e9).doc("Has no effect.");
  made->native_master = made->rate_before_count = true;
  made->by_element = false;  // warmup_strategy='lars' computes norms
  made->variant = ends_batch;
  made->rates = lbsgd_rates;
  made->states = [](const Settings& s) {
    if (s.batch_scale <= 1) return s.momentum != 0 ? one_state("momentum") : no_state(s);
    StateLayout layout = tuple_of({"momentum", "total"});
    if (s.momentum == 0) layout.items[0].reset();
    return layout;
  };
  made->build = build_lbsgd;
  return made;
}

}  // namespace

void add_large_batch_rules(RuleList& list) {
  list.push_back(lars());
  list.push_back(lbsgd());
}

}  // namespace hybridnet::optimizer
