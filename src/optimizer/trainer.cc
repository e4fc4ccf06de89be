#include "optimizer/trainer.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "base/replace_file.h"
#include "hybridnet/imperative.h"
#include "optimizer/group_training.h"
#include "optimizer/update.h"

namespace hybridnet::optimizer {
namespace {

const OpRef kCast{"Cast"};

// Disables recording: steps are not differentiated.
class NotRecorded {
 public:
  NotRecorded() : before_(std::exchange(autograd_state().recording, false)) {}
  ~NotRecorded() { autograd_state().recording = before_; }
  NotRecorded(const NotRecorded&) = delete;

 private:
  bool before_;
};

NDArray as_float32(const NDArray& array) {
  const NDArray of = array.detached();
  return invoke_one(kCast.op(), kCast.op().schema->parse({{"dtype", AttrValue("float32")}}, kCast.name()), {&of, 1});
}

std::string names_of(std::span<const TrainedParameter> parameters) {
  std::string names;
  for (const TrainedParameter& p : parameters) names += (names.empty() ? "" : ", ") + p.name;
  return names;
}

}  // namespace

Trainer::Trainer(std::vector<TrainedParameter> parameters, std::string_view optimizer, const Texts& settings)
    : parameters_(std::move(parameters)) {
  std::sort(parameters_.begin(), parameters_.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  for (size_t i = 1; i < parameters_.size(); ++i)
    if (parameters_[i].name == parameters_[i - 1].name)
      throw ValueError({.input = "parameters",
                        .expected = "a name of its own for each",
                        .given = "'" + parameters_[i].name + "' twice"});
  state_.rule = &rule(optimizer);
  state_.settings = state_.rule->parse(settings);
  state_.num_update = state_.settings.begin_num_update;
}

double Trainer::base_rate() {
  return state_.schedule ? state_.schedule->rate(state_.num_update) : state_.settings.learning_rate;
}

std::vector<size_t> Trainer::fresh_parameters(bool ignore_stale_grad) const {
  std::vector<size_t> found;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const NDArray& weight = parameters_[i].weight;
    if (!grad_of(weight)) continue;
    if (gradient_is_fresh(weight)) {
      found.push_back(i);
    } else if (!ignore_stale_grad) {
      throw GradientError({.input = parameters_[i].name,
                           .message = "the gradient of parameter '" + parameters_[i].name +
                                      "' has not been computed since the last step",
                           .because = "no loss that depends on it went through backward",
                           .fix = "call backward before each step, or pass ignore_stale_grad to leave it as it is"});
    }
  }
  return found;
}

void Trainer::count(size_t index) {
  const int64_t now = state_.counts.try_emplace(index, state_.settings.begin_num_update).first->second += 1;
  state_.num_update = std::max(state_.num_update, now);
}

UpdateItem Trainer::make_item(size_t index) {
  const TrainedParameter& p = parameters_[index];
  UpdateItem item{.weight = p.weight.detached(), .grad = grad_of(p.weight), .name = p.name};
  auto [at, is_new] = state_.weights.try_emplace(index);
  if (is_new) {
    try {
      if (needs_master(state_.settings, p.weight)) at->second.master = as_float32(p.weight);
      at->second.arrays =
          make_states(*state_.rule, state_.settings, at->second.master ? at->second.master : p.weight.detached());
    } catch (...) {
      state_.weights.erase(at);
      throw;
    }
  }
  item.master = at->second.master;
  item.states = at->second.arrays;
  return item;
}

void Trainer::run(std::span<UpdateItem> items, Settings now) {
  update(
      *state_.rule, now, items, base_rate(), [](const NDArray& array) { array.wait_for_values(); }, programs_);
  for (const std::string& name : state_.rule->variables) {
    const int field = state_.rule->schema.find(name);
    state_.rule->schema.set(&state_.settings, field, state_.rule->schema.get(&now, field), state_.rule->name);
  }
}

// Steps weights of one dtype together if the rule aggregates, else one weight.
void Trainer::step_together(std::span<const size_t> indices, const Settings& now) {
  std::vector<UpdateItem> items;
  for (const size_t index : indices) items.push_back(make_item(index));
  if (!state_.rule->rate_before_count)
    for (const size_t index : indices) count(index);
  const double rate = base_rate();
  for (size_t i = 0; i < items.size(); ++i) {
    items[i].lr = rate * parameters_[indices[i]].lr_mult;
    items[i].wd = now.wd * parameters_[indices[i]].wd_mult;
  }
  if (state_.rule->rate_before_count)
    for (const size_t index : indices) count(index);
  for (size_t i = 0; i < items.size(); ++i) items[i].t = state_.counts[indices[i]];
  run(items, now);
}

void Trainer::step(double batch_size, bool ignore_stale_grad) {
  if (!(batch_size > 0))
    throw ValueError({.input = "batch_size", .expected = "a positive number", .given = AttrValue(batch_size).str()});
  const std::lock_guard lock(mutex_);
  const NotRecorded scope;
  if (sums_over_group_ && ignore_stale_grad) agree_on_stale_gradients(parameters_);
  const std::vector<size_t> indices = fresh_parameters(ignore_stale_grad);
  if (sums_over_group_) sum_gradients(parameters_, batch_size);
  Settings now = state_.settings;
  now.rescale_grad = state_.settings.rescale_grad / batch_size;
  const auto carry = [&] {  // copies the values that the last update has changed
    const double scale = now.rescale_grad;
    now = state_.settings;
    now.rescale_grad = scale;
  };
  if (state_.rule->aggregates) {
    std::vector<std::pair<DType, std::vector<size_t>>> groups;
    for (const size_t index : indices) {
      const DType dtype = parameters_[index].weight.dtype();
      const auto is_same = [&](const auto& group) { return group.first == dtype; };
      auto group = std::find_if(groups.begin(), groups.end(), is_same);
      if (group == groups.end()) group = groups.insert(groups.end(), {dtype, {}});
      group->second.push_back(index);
    }
    for (const auto& group : groups) step_together(group.second, now), carry();
  } else {
    for (const size_t& index : indices) step_together({&index, 1}, now), carry();
  }
  // Done last, so that a failed step can be repeated.
  for (const size_t index : indices) set_gradient_fresh(parameters_[index].weight, false);
}

void Trainer::sum_over_group() {
  const std::lock_guard lock(mutex_);
  const NotRecorded scope;
  take_values_of_first_process(parameters_);
  sums_over_group_ = true;
}

double Trainer::learning_rate() {
  const std::lock_guard lock(mutex_);
  return base_rate();
}

void Trainer::set_learning_rate(double rate) {
  const std::lock_guard lock(mutex_);
  if (state_.schedule)
    throw ValueError({.input = "learning_rate",
                      .message = "the learning rate is that of the schedule " + state_.schedule->name(),
                      .fix = "set another schedule, or none, before"});
  state_.settings.learning_rate = rate;
}

void Trainer::set_schedule(std::string_view name, const Texts& arguments) {
  const std::lock_guard lock(mutex_);
  state_.schedule = Schedule::make(name, arguments, state_.settings.learning_rate);
}

void Trainer::drop_schedule() {
  const std::lock_guard lock(mutex_);
  state_.schedule.reset();
}

void Trainer::set_multipliers(std::string_view parameter, double lr_mult, double wd_mult) {
  const std::lock_guard lock(mutex_);
  for (TrainedParameter& p : parameters_)
    if (p.name == parameter) {
      p.lr_mult = lr_mult;
      p.wd_mult = wd_mult;
      return;
    }
  throw ValueError({.input = "parameter",
                    .expected = "one of " + names_of(parameters_),
                    .given = "'" + std::string(parameter) + "'"});
}

int Trainer::field_of(std::string_view name) const {
  const Rule& rule = *state_.rule;
  const int field = rule.is_variable(name) ? -1 : rule.schema.find(name);
  if (field >= 0) return field;
  std::string known;
  for (const FieldInfo& each : rule.schema.fields())
    if (!rule.is_variable(each.name)) known += (known.empty() ? "" : ", ") + each.name;
  throw ParamError(
      {.op = rule.name, .input = "name", .expected = "one of " + known, .given = "'" + std::string(name) + "'"});
}

std::string Trainer::setting(std::string_view name) {
  const std::lock_guard lock(mutex_);
  return state_.rule->schema.get(&state_.settings, field_of(name)).str();
}

void Trainer::set_setting(std::string_view name, const std::string& text) {
  if (name == "learning_rate") {
    const Settings read = [&] {
      const std::lock_guard lock(mutex_);
      return state_.rule->parse({{"learning_rate", text}});
    }();
    return set_learning_rate(read.learning_rate);
  }
  const std::lock_guard lock(mutex_);
  Settings changed = state_.settings;
  state_.rule->schema.set(&changed, field_of(name), AttrValue(text), state_.rule->name);
  state_.settings = changed;
}

int64_t Trainer::num_update() {
  const std::lock_guard lock(mutex_);
  return state_.num_update;
}

std::string Trainer::optimizer() {
  const std::lock_guard lock(mutex_);
  return state_.rule->name;
}

void Trainer::save_states(const std::string& path) {
  const std::lock_guard lock(mutex_);
  const std::string bytes = write_states(state_, parameters_);
  replace_file(path, [&](std::FILE* file) { return std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size(); });
}

void Trainer::load_states(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) throw_file_error(path, "read", "check the path and the working directory");
  const std::lock_guard lock(mutex_);
  state_ = read_states(text.view(), path, state_, parameters_);
  programs_ = {};
}

}  // namespace hybridnet::optimizer
