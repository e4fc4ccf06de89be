#include "optimizer/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace hybridnet::optimizer {
namespace {

// Limit of numbers of updates: doubles represent them exactly, and sums of two fit into int64.
constexpr double kMaxUpdates = 9e15;

using Kinds = std::vector<std::unique_ptr<ScheduleKind>>;

[[noreturn]] void refuse(const char* argument, std::string expected, std::string given) {
  throw ValueError({.input = argument, .expected = std::move(expected), .given = std::move(given)});
}

std::string text(double value) { return AttrValue(value).str(); }

std::unique_ptr<ScheduleKind> make_kind(const char* name) {
  auto kind = std::make_unique<ScheduleKind>();
  kind->name = name;
  for (FieldsSchema<ScheduleState>* fields : {&kind->arguments, &kind->attributes}) {
    fields->field("base_lr", &ScheduleState::base_lr).default_value(0.01).doc("Rate at the end of the warm-up.");
    fields->field("warmup_steps", &ScheduleState::warmup_steps)
        .default_value(0)
        .range(0, kMaxUpdates)
        .doc("Number of updates of the warm-up.");
    fields->field("warmup_begin_lr", &ScheduleState::warmup_begin_lr)
        .default_value(0.0)
        .doc("Rate at update 0 of the warm-up, at most base_lr.");
    fields->field("warmup_mode", &ScheduleState::warmup_mode)
        .default_value("linear")
        .one_of({"linear", "constant"})
        .doc("'linear' climbs in equal steps, 'constant' stays at warmup_begin_lr.");
  }
  kind->attributes.field("warmup_final_lr", &ScheduleState::warmup_final_lr).doc("Rate at the end of the warm-up.");
  return kind;
}

void check_factor(const ScheduleState& s) {
  if (s.factor > 1.0) refuse("factor", "at most 1", text(s.factor));
}

std::unique_ptr<ScheduleKind> factor_schedule() {
  auto kind = make_kind("FactorScheduler");
  for (FieldsSchema<ScheduleState>* fields : {&kind->arguments, &kind->attributes}) {
    fields->field("step", &ScheduleState::step).range(1, kMaxUpdates).doc("Updates between two changes.");
    fields->field("factor", &ScheduleState::factor).default_value(1.0).doc("Factor of each change, at most 1.");
    fields->field("stop_factor_lr", &ScheduleState::stop_factor_lr).default_value(1e-8).doc("Lower limit of the rate.");
  }
  kind->attributes.field("count", &ScheduleState::count).doc("Update of the last change.");
  kind->begin = check_factor;
  kind->rate_after_warmup = [](ScheduleState& s, int64_t num_update) {
    while (num_update > s.count + s.step) {
      const double next = std::max(s.base_lr * s.factor, s.stop_factor_lr);
      const bool stays = next == s.base_lr || std::isnan(next);
      s.base_lr = next;
      s.count += stays ? (num_update - s.count - 1) / s.step * s.step : s.step;
    }
    return s.base_lr;
  };
  kind->check_restored = [](const ScheduleState& s, int64_t num_update) {
    constexpr int64_t kMostChanges = 1'000'000'000;  // takes seconds; saved trainings contain the changes so far
    if ((num_update - s.count) / s.step > kMostChanges)
      refuse("count",
             "at most " + std::to_string(kMostChanges) + " changes behind update " + std::to_string(num_update),
             std::to_string(s.count));
  };
  return kind;
}

std::unique_ptr<ScheduleKind> multi_factor_schedule() {
  auto kind = make_kind("MultiFactorScheduler");
  for (FieldsSchema<ScheduleState>* fields : {&kind->arguments, &kind->attributes}) {
    fields->field("step", &ScheduleState::steps).doc("Increasing numbers of updates: (100, 200).");
    fields->field("factor", &ScheduleState::factor).default_value(1.0).doc("Factor of each change, at most 1.");
  }
  kind->attributes.field("count", &ScheduleState::count).doc("Update of the last change.");
  kind->attributes.field("cur_step_ind", &ScheduleState::cur_step_ind).at_least(0).doc("Number of changes so far.");
  kind->begin = [](ScheduleState& s) {
    check_factor(s);
    if (s.steps.empty()) refuse("step", "one number of updates at least", "()");
    for (size_t i = 0; i < s.steps.size(); ++i)
      if (s.steps[i] != std::floor(s.steps[i]) || s.steps[i] < 1 || s.steps[i] > kMaxUpdates ||
          (i > 0 && s.steps[i] <= s.steps[i - 1]))
        refuse("step", "increasing integers from 1 on", text(s.steps[i]) + " at place " + std::to_string(i));
  };
  kind->rate_after_warmup = [](ScheduleState& s, int64_t num_update) {
    while (s.cur_step_ind < static_cast<int64_t>(s.steps.size()) &&
           static_cast<double>(num_update) > s.steps[static_cast<size_t>(s.cur_step_ind)]) {
      s.count = static_cast<int64_t>(s.steps[static_cast<size_t>(s.cur_step_ind++)]);
      s.base_lr *= s.factor;
    }
    return s.base_lr;
  };
  return kind;
}

// A smooth decay from base_lr to final_lr that ends at max_update; share defines its shape on [0, 1].
std::unique_ptr<ScheduleKind> decay_schedule(const char* name,
                                             std::function<double(const ScheduleState&, double)> share) {
  auto kind = make_kind(name);
  for (FieldsSchema<ScheduleState>* fields : {&kind->arguments, &kind->attributes}) {
    fields->field("max_update", &ScheduleState::max_update)
        .range(1, kMaxUpdates)
        .doc("Number of updates after which final_lr is reached, larger than warmup_steps.");
    fields->field("final_lr", &ScheduleState::final_lr).default_value(0.0).doc("Rate at the end.");
  }
  kind->attributes.field("base_lr_orig", &ScheduleState::base_lr_orig).doc("Rate at the beginning of the decay.");
  kind->attributes.field("max_steps", &ScheduleState::max_steps).at_least(1).doc("Number of updates of the decay.");
  kind->begin = [](ScheduleState& s) {
    if (s.max_update <= s.warmup_steps)
      refuse("max_update", "more than warmup_steps (" + std::to_string(s.warmup_steps) + ")",
             std::to_string(s.max_update));
    s.base_lr_orig = s.base_lr;
    s.max_steps = s.max_update - s.warmup_steps;
  };
  kind->rate_after_warmup = [share = std::move(share)](ScheduleState& s, int64_t num_update) {
    if (num_update <= s.max_update) {
      const double progress = static_cast<double>(num_update - s.warmup_steps) / static_cast<double>(s.max_steps);
      s.base_lr = s.final_lr + (s.base_lr_orig - s.final_lr) * share(s, progress);
    }
    return s.base_lr;
  };
  return kind;
}

const Kinds& kinds() {
  static const Kinds list = [] {
    Kinds made;
    made.push_back(factor_schedule());
    made.push_back(multi_factor_schedule());
    auto poly = decay_schedule("PolyScheduler",
                               [](const ScheduleState& s, double progress) { return std::pow(1 - progress, s.pwr); });
    poly->arguments.field("pwr", &ScheduleState::pwr)
        .default_value(2.0)
        .doc("Exponent of the remaining share of the decay.");
    poly->attributes.field("power", &ScheduleState::pwr).doc("Exponent of the remaining share of the decay.");
    made.push_back(std::move(poly));
    made.push_back(decay_schedule("CosineScheduler", [](const ScheduleState&, double progress) {
      return (1 + std::cos(std::numbers::pi * progress)) / 2;
    }));
    return made;
  }();
  return list;
}

const ScheduleKind* find_kind(std::string_view name, std::string* known) {
  for (const auto& kind : kinds()) {
    if (kind->name == name) return kind.get();
    *known += (known->empty() ? "" : ", ") + kind->name;
  }
  return nullptr;
}

}  // namespace

Schedule Schedule::make(std::string_view name, std::vector<std::pair<std::string, std::string>> arguments,
                        double default_lr) {
  std::string known;
  const ScheduleKind* kind = find_kind(name, &known);
  if (kind == nullptr)
    throw ValueError({.input = "schedule", .expected = "one of " + known, .given = "'" + std::string(name) + "'"});
  const auto is_base = [](const auto& argument) { return argument.first == "base_lr"; };
  if (std::none_of(arguments.begin(), arguments.end(), is_base))
    arguments.emplace_back("base_lr", AttrValue(default_lr).str());
  Schedule made(*kind);
  made.state_ = kind->arguments.parse(arguments, kind->name, false)->as<ScheduleState>();
  ScheduleState& s = made.state_;
  if (s.warmup_begin_lr > s.base_lr)
    refuse("warmup_begin_lr", "at most base_lr (" + text(s.base_lr) + ")", text(s.warmup_begin_lr));
  s.warmup_final_lr = s.base_lr;
  kind->begin(s);
  return made;
}

Schedule Schedule::restore(const std::string& name, const std::vector<std::pair<std::string, AttrValue>>& attributes,
                           int64_t num_update) {
  std::string known;
  const ScheduleKind* kind = find_kind(name, &known);
  if (kind == nullptr)
    throw FormatError({.message = "the states were saved with learning-rate schedule '" + name + "'",
                       .because = "there are " + known,
                       .fix = "load them in Python, or train on with a schedule of these"});
  Schedule made(*kind);
  std::vector<std::pair<std::string, AttrValue>> known_ones;  // objects may have other attributes
  for (const auto& attribute : attributes)
    if (kind->attributes.find(attribute.first) >= 0) known_ones.push_back(attribute);
  made.state_ = kind->attributes.parse(known_ones, kind->name)->as<ScheduleState>();
  if (kind->attributes.find("cur_step_ind") >= 0) kind->begin(made.state_);
  if (kind->check_restored) kind->check_restored(made.state_, num_update);
  return made;
}

std::vector<std::pair<std::string, AttrValue>> Schedule::attributes() const {
  std::vector<std::pair<std::string, AttrValue>> found;
  const auto& fields = kind_->attributes.fields();
  for (size_t i = 0; i < fields.size(); ++i) {
    AttrValue value = kind_->attributes.get(&state_, static_cast<int>(i));
    if (auto* list = std::get_if<AttrValue::List>(&value.value))
      for (AttrValue& item : *list) item = static_cast<int64_t>(std::get<double>(item.value));
    found.emplace_back(fields[i].name, std::move(value));
  }
  return found;
}

double Schedule::rate(int64_t num_update) {
  ScheduleState& s = state_;
  if (num_update >= s.warmup_steps) return kind_->rate_after_warmup(s, num_update);
  if (s.warmup_mode == "constant") return s.warmup_begin_lr;
  return s.warmup_begin_lr + (s.warmup_final_lr - s.warmup_begin_lr) * static_cast<double>(num_update) /
                                 static_cast<double>(s.warmup_steps);
}

}  // namespace hybridnet::optimizer
