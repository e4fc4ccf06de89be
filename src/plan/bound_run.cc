#include "plan/bound_run.h"

#include <algorithm>

#include "engine/inline_run.h"
#include "engine/profile.h"
#include "hybridnet/threads.h"
#include "ndarray/overlap.h"
#include "ndarray/release.h"
#include "plan/plain_copy.h"
#include "plan/plan_work.h"

namespace hybridnet {
namespace {

void add_once(std::vector<Var*>& list, Var* var) {
  if (std::find(list.begin(), list.end(), var) == list.end()) list.push_back(var);
}

void check_output(const GraphCallable& function, size_t index, const NDArray& given, const TensorSpec& wanted) {
  const std::string name = "output " + std::to_string(index);
  if (given.shape() != wanted.shape)
    throw ShapeError({.op = function.options().name,
                      .input = name,
                      .expected = "shape " + wanted.shape.str(),
                      .given = given.shape().str()});
  if (given.is_sparse())
    throw UnsupportedError(
        {.op = function.options().name, .input = name, .expected = "a dense array", .given = "a sparse one"});
  if (given.dtype() != wanted.dtype)
    throw DTypeError({.op = function.options().name,
                      .input = name,
                      .expected = dtype_name(wanted.dtype),
                      .given = dtype_name(given.dtype())});
}

}  // namespace

BoundRun::BoundRun(Ref<GraphCallable> function, std::vector<NDArray> inputs, std::span<const NDArray> outputs,
                   Calls calls)
    : function_(std::move(function)),
      compiled_(function_->compilation_for_prediction(inputs)),
      inputs_(std::move(inputs)) {
  const Plan& plan = *compiled_->forward;
  const size_t num_outputs = plan.outputs().size();
  if (!outputs.empty() && outputs.size() != num_outputs)
    throw ValueError({.op = function_->options().name,
                      .input = "outputs",
                      .expected = std::to_string(num_outputs) + " arrays",
                      .given = std::to_string(outputs.size())});
  fresh_.resize(plan.fresh_outputs().size());
  outputs_.assign(outputs.begin(), outputs.end());
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const Plan::OutputInfo& info = plan.outputs()[i];
    check_output(*function_, i, outputs_[i], info.spec);
    const auto shares = [&](const NDArray& other) { return other && overlap(other, outputs_[i]); };
    NDArray& place = fresh_[static_cast<size_t>(info.fresh)];
    if (!place && !std::any_of(inputs_.begin(), inputs_.end(), shares) &&
        !std::any_of(fresh_.begin(), fresh_.end(), shares))
      place = outputs_[i];
    else
      copies_.push_back({static_cast<size_t>(info.fresh), i});
  }
  for (size_t i = 0; i < fresh_.size(); ++i)
    if (!fresh_[i]) fresh_[i] = NDArray::empty(plan.fresh_outputs()[i], plan.device());
  if (outputs.empty())
    for (const Plan::OutputInfo& info : plan.outputs()) {
      const NDArray& array = fresh_[static_cast<size_t>(info.fresh)];
      const bool first = std::none_of(outputs_.begin(), outputs_.end(), [&](const NDArray& o) { return o == array; });
      outputs_.push_back(first && array.spec() == info.spec ? array : array.reshaped(info.spec.shape));
    }
  const auto hold = [&](const std::vector<NDArray>& arrays) {
    for (const NDArray& array : arrays) held_.push_back(array.impl()->chunk);
  };
  hold(inputs_);
  hold(fresh_);
  hold(outputs_);
  for (const NDArray& array : fresh_) add_once(writes_, &array.var());
  for (const NDArray& array : outputs_) add_once(writes_, &array.var());
  for (const NDArray& array : inputs_)
    if (std::find(writes_.begin(), writes_.end(), &array.var()) == writes_.end()) add_once(reads_, &array.var());
  if (const auto& constants = function_->constants().arrays())
    for (const NDArray& array : *constants)
      if (std::find(writes_.begin(), writes_.end(), &array.var()) == writes_.end()) add_once(reads_, &array.var());
  bindings_.resize(inputs_.size());
  places_.resize(fresh_.size());
  if (calls == Calls::kOne || plan.device().type == DeviceType::kGPU) return;
  own_.emplace(compiled_->forward);
  if (Ref<Plan> awake = function_->awake_team_plan(*compiled_)) awake_.emplace(std::move(awake));
}

void BoundRun::run() {
  for (const NDArray& output : outputs_) note_overwrite(output);
  const RngKey key = compiled_->forward->uses_random() ? next_rng_key() : RngKey{};
  Engine& e = engine();
  const Engine::Access access{reads_, writes_};
  // Other threads may use the arrays between the end of a wait and the attempt.
  while (!e.try_begin_inline(access, {.name = function_->task_name()})) {
    for (Var* var : reads_) e.wait_to_read(*var);
    for (Var* var : writes_) e.wait_for_var(*var);
  }
  const InlineRun running(e, access);
  const bool is_awake = awake_ && finds_team_awake();
  const CoreLease lease(is_awake ? awake_->plan->cores() : compiled_->forward->cores());
  run_plan(key, is_awake ? &*awake_ : own_ ? &*own_ : nullptr);
  if (awake_) ended_ = Clock::now();
}

// True if the team is awake: its members look for work for some time before they sleep, and waking them would cost the
// time that they save. Cores that other threads use do not count.
bool BoundRun::finds_team_awake() const {
  constexpr std::chrono::microseconds kAwake(30);
  if (current_cores() == 1) return false;  // this thread has no other cores
  return Clock::now() - ended_ < kAwake && free_cores() >= std::min(awake_->plan->cores(), cpu_cores());
}

void BoundRun::run_plan(RngKey key, OwnPlan* own) {
  const profile::Scope scope(function_->task_name(), "graph");
  const Plan& plan = own ? *own->plan : *compiled_->forward;
  PlanWork work(plan, inputs_, function_->constants().arrays().get(), {fresh_, outputs_});
  for (size_t i = 0; i < inputs_.size(); ++i)
    bindings_[i] = {plan.needs_values(i) ? inputs_[i].data() : inputs_[i].address(),
                    inputs_[i].impl()->chunk->derived()};
  for (size_t i = 0; i < fresh_.size(); ++i) places_[i] = fresh_[i].data();
  Plan::Call call;
  call.inputs = bindings_;
  call.outputs = places_;
  call.rng = key;
  call.arrays = inputs_;
  if (own)
    own->runs.run(call);
  else
    compiled_->forward->run(call);
  release_packed(inputs_);
  for (const Copy& copy : copies_) {
    const NDArray& output = outputs_[copy.output];
    if (output.bytes() > 0) copy_plainly(output.data(), places_[copy.fresh], output.bytes(), "");
  }
  work.finish();
}

}  // namespace hybridnet
