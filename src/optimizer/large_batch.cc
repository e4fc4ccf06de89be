// SGD for large batches: rates that depend on norms of layers, and batches made of several.
#include <algorithm>
#include <cmath>

#include "hybridnet/imperative.h"
#include "optimizer/rules.h"

namespace hybridnet::optimizer {
namespace {

const OpRef kSumSquares{"multi_sum_sq"}, kNorm{"norm"}, kCast{"Cast"}, kAdd{"elemwise_add"}, kDivide{"_div_scalar"};

NDArray run(const OpRef& op, std::vector<NDArray> inputs, std::vector<std::pair<std::string, AttrValue>> attributes) {
  return invoke(op.op(), op.op().schema->parse(attributes, op.name()), inputs)[0];
}

std::vector<double> read_floats(const NDArray& array, const Rule::Wait& wait) {
  wait(array);
  std::vector<float> values(static_cast<size_t>(array.size()));
  array.copy_to(values.data());
  return {values.begin(), values.end()};
}

// ---------------------------------------------------------------------------------------------------------------- LARS

bool ends_with_any(const std::string& name, std::initializer_list<const char*> ends) {
  return std::any_of(ends.begin(), ends.end(), [&](const char* end) { return name.ends_with(end); });
}

void scale_layers(const Settings& s, std::span<UpdateItem> items, const Rule::Wait& wait) {
  std::vector<UpdateItem*> scaled;
  for (UpdateItem& item : items)
    if (!ends_with_any(item.name, {"gamma", "beta", "bias"})) scaled.push_back(&item);
  if (scaled.empty()) return;
  std::vector<NDArray> arrays;
  for (const UpdateItem* item : scaled) arrays.push_back(item->weight);
  for (const UpdateItem* item : scaled) arrays.push_back(item->grad);
  const auto count = static_cast<int64_t>(arrays.size());
  const std::vector<double> squares = read_floats(run(kSumSquares, arrays, {{"num_arrays", count}}), wait);
  for (size_t i = 0; i < scaled.size(); ++i) {
    const double weight = std::sqrt(squares[i]), grad = std::sqrt(squares[scaled.size() + i]) * s.rescale_grad;
    if (weight > 0.0 && grad > 0.0) scaled[i]->lr *= s.eta * weight / (grad + scaled[i]->wd * weight + s.eps);
  }
}

void adjust_lars(Settings& s, std::span<UpdateItem> items, double base_lr, const Rule::Wait& wait) {
  scale_layers(s, items, wait);
  if (s.momentum <= 0) return;
  s.last_lr = s.cur_lr ? s.cur_lr : base_lr;
  s.cur_lr = base_lr;
  if (s.momentum_correction && *s.last_lr != 0) s.momentum = s.momentum * base_lr / *s.last_lr;
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
      .doc("Whether momentum follows changes of the learning rate.");
  fields.field("last_lr", &Settings::last_lr).none_by_default().doc("Learning rate of the step before the last.");
  fields.field("cur_lr", &Settings::cur_lr).none_by_default().doc("Learning rate of the last step.");
  made->variables = {"last_lr", "cur_lr"};
  made->aggregates = made->native_master = true;
  made->build = [](const Settings& s, UpdateBuilder& b) { build_descent(s, b, b.grad()); };
  made->adjust = adjust_lars;
  return made;
}

// --------------------------------------------------------------------------------------------------------------- LBSGD

// Number of gradients that came, with those of the epochs before begin_epoch.
int64_t count_of(const Settings& s, int64_t t) { return s.begin_epoch * s.updates_per_epoch + t - s.begin_num_update; }

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

double ratio_of_norms(const Settings& s, const UpdateItem& item, const Rule::Wait& wait) {
  const auto square = [&](const NDArray& array) {
    const double norm = read_floats(run(kNorm, {run(kCast, {array}, {{"dtype", "float32"}})}, {}), wait)[0];
    return norm * norm;
  };
  NDArray grad = item.grad;
  if (s.batch_scale > 1) {
    grad = run(kCast, {grad}, {{"dtype", dtype_name(item.states[1].dtype())}});
    grad = run(kDivide, {run(kAdd, {item.states[1], grad}, {})}, {{"scalar", static_cast<double>(s.batch_scale)}});
  }
  const double weight = square(item.weight);
  return std::clamp(std::sqrt(weight / (square(grad) + item.wd * weight + 1e-18)), 0.01, 100.0);
}

void adjust_lbsgd(Settings& s, std::span<UpdateItem> items, double, const Rule::Wait& wait) {
  for (UpdateItem& item : items) {
    const int64_t count = count_of(s, item.t);
    if (count % s.batch_scale != 0) continue;
    item.lr *= s.warmup_strategy == "lars" ? ratio_of_norms(s, item, wait) : warm_up(s, count);
  }
}

void build_lbsgd(const Settings& s, UpdateBuilder& b) {
  if (s.batch_scale <= 1) return build_descent(s, b, b.grad());
  const Term total = b.state(1);
  const bool casts = b.uses_native_master();
  b.assign(total, total + (casts ? b.call("Cast", {b.grad()}, {{"dtype", "float32"}}) : b.grad()));
  if (count_of(s, b.subject().t) % s.batch_scale != 0) return;
  const Term mean = total / static_cast<double>(s.batch_scale);
  build_descent(s, b, casts ? b.call("Cast", {mean}, {{"dtype", dtype_name(b.dtype())}}) : mean);
  b.assign(total, b.call("zeros_like", {total}));
}

std::unique_ptr<Rule> lbsgd() {
  auto made = make_rule("LBSGD", "SGD whose gradients of batch_scale steps are averaged, and whose rate warms up.");
  add_momentum(*made);
  SettingsSchema& fields = made->schema;
  fields.field("warmup_strategy", &Settings::warmup_strategy)
      .default_value("linear")
      .doc("How the rate grows: 'linear', 'power2', 'sqrt'; 'lars': by the ratio of norms.");
  // Bounds, so that products of two are whole numbers of 64 bits.
  fields.field("warmup_epochs", &Settings::warmup_epochs)
      .default_value(5)
      .range(0, 1e9)
      .doc("Epochs in which the rate grows.");
  fields.field("batch_scale", &Settings::batch_scale)
      .default_value(1)
      .at_least(1)
      .doc("Steps that make a large batch.");
  fields.field("updates_per_epoch", &Settings::updates_per_epoch)
      .default_value(32)
      .range(0, 1e9)
      .doc("Steps of an epoch.");
  fields.field("begin_epoch", &Settings::begin_epoch)
      .default_value(0)
      .range(0, 1e9)
      .doc("Epochs before the first step.");
  fields.field("num_epochs", &Settings::num_epochs).default_value(60).range(0, 1e9).doc("Has no effect.");
  made->native_master = made->rate_before_count = made->changes_with_t = true;
  made->states = [](const Settings& s) {
    if (s.batch_scale <= 1) return s.momentum != 0 ? one_state("momentum") : no_state(s);
    StateLayout layout = tuple_of({"momentum", "total"});
    if (s.momentum == 0) layout.items[0].reset();
    return layout;
  };
  made->build = build_lbsgd;
  made->adjust = adjust_lbsgd;
  return made;
}

}  // namespace

void add_large_batch_rules(RuleList& list) {
  list.push_back(lars());
  list.push_back(lbsgd());
}

}  // namespace hybridnet::optimizer
