#include "plan/graph_callable.h"

#include <algorithm>

#include "engine/profile.h"
#include "graph/control/control_flow.h"
#include "graph/control/unequal_branches.h"
#include "hybridnet/env.h"
#include "hybridnet/sparse.h"
#include "hybridnet/threads.h"
#include "imperative/autograd_scope.h"
#include "imperative/invoke.h"
#include "imperative/out_arrays.h"
#include "imperative/tape.h"
#include "ndarray/overlap.h"
#include "passes/gradient/control_gradient.h"
#include "plan/task.h"
#include "plan/value_comparison.h"

namespace hybridnet {
namespace {

const OpRef kCopy{"_copy"}, kGradientNode{"_gradient"};

// A recorded call of a graph function: one step on the tape.
class RecordedRun final : public RecordedFunction {
 public:
  RecordedRun(Ref<GraphCallable> function, Ref<GraphRun> run, std::span<const NDArray> inputs)
      : function_(std::move(function)), run_(std::move(run)), train_(autograd_state().training) {
    inputs_.reserve(inputs.size());
    for (const NDArray& input : inputs) inputs_.push_back(SavedArray::of(input));
  }

  std::string name() const override { return function_->options().name; }
  bool returns_fresh_arrays() const override { return true; }
  bool takes_sparse_gradients() const override { return true; }
  std::vector<Value> as_graph(std::span<const Value> inputs) const override {
    return function_->definition().applied_to(inputs);
  }
  std::vector<NDArray> backward(std::span<const NDArray> out_grads, bool create_graph) override {
    return create_graph ? run_->differentiable_backward(values(), out_grads) : backward_into(out_grads, {});
  }
  std::vector<NDArray> backward_into(std::span<const NDArray> out_grads, std::span<const NDArray> into) override {
    const GraphRun::Heads compared = run_->compare(out_grads);
    if (compared == GraphRun::Heads::kSame || (compared == GraphRun::Heads::kFewer && !can_repeat()))
      return run_->backward(out_grads, into);
    const AutogradScope unrecorded({.recording = false, .training = train_});
    return run_->differentiable_backward(values(), out_grads);
  }
  void free_residuals() override {
    inputs_.clear();
    run_ = nullptr;
  }
  void visit_saved(const std::function<void(NDArray&)>& visit) override {
    for (SavedArray& input : inputs_) visit(input.array);
    if (run_) run_->visit_saved(visit);
  }

 private:
  // True if the memory of the inputs still holds the values that the run has read.
  bool can_repeat() const {
    const std::vector<uint8_t> written = function_->written_inputs(train_), read = function_->read_inputs(train_);
    for (size_t i = 0; i < inputs_.size(); ++i)
      if (written[i] != 0 ? read[i] != 0 : inputs_[i].is_overwritten()) return false;
    return true;
  }

  // Returns the inputs with their values at the run, for a gradient that repeats it. States that the run only wrote
  // (running means) do not count.
  std::vector<NDArray> values() const {
    const std::vector<uint8_t> written = function_->written_inputs(train_), read = function_->read_inputs(train_);
    std::vector<NDArray> arrays;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const bool was_read = written[i] == 0;
      if (!was_read && read[i] != 0)
        throw UnsupportedError({.op = name(),
                                .input = function_->definition().inputs[i]->name,
                                .message = "gradients of gradients need the value that the call itself wrote over",
                                .fix = "return the new value from the block and write it after the call"});
      if (was_read && inputs_[i].is_overwritten())
        throw_overwritten(name(), function_->definition().inputs[i]->name, inputs_[i], {});
      arrays.push_back(inputs_[i].array);
    }
    return arrays;
  }

  const Ref<GraphCallable> function_;
  Ref<GraphRun> run_;
  std::vector<SavedArray> inputs_;
  const bool train_;
};

// One flag per array; on the stack for few arrays.
class ArrayFlags {
 public:
  explicit ArrayFlags(size_t n) : size_(n), heap_(n > sizeof(stack_) ? n : 0) {}
  uint8_t* data() { return heap_.empty() ? stack_ : heap_.data(); }
  std::span<const uint8_t> span() { return {data(), size_}; }

 private:
  size_t size_;
  std::vector<uint8_t> heap_;
  uint8_t stack_[64];
};

uint8_t want_of(const NDArray& input) {
  if (!needs_gradient(input)) return kNoGradient;
  const NDArray buffer = grad_of(input);
  return buffer && buffer.storage_type() == StorageType::kRowSparse ? kGradientByRows : kGradient;
}

bool find_wanted(std::span<const NDArray> inputs, ArrayFlags& wants) {
  bool any = false;
  for (size_t i = 0; i < inputs.size(); ++i) any |= (wants.data()[i] = want_of(inputs[i])) != kNoGradient;
  return any;
}

void copy_array(const NDArray& from, const NDArray& to) {
  invoke(kCopy.op(), kCopy.op().default_params, {&from, 1}, {&to, 1});
}

}  // namespace

GraphCallable::GraphCallable(GraphDefinition definition, CompileOptions options)
    : definition_(std::move(definition)),
      constants_(definition_),
      options_(std::move(options)),
      compiler_(definition_, options_) {
  if (options_.name.empty()) options_.name = "CachedOp";
  expected_heads_ = &known_heads_.emplace_back();
  if (!options_.arenas) options_.arenas = make_ref<ArenaPool>();
  if (definition_.checked && !options_.kernels) options_.kernels = make_ref<KernelStore>();
  task_name_ = intern_file(options_.name);
  for (const Node* node : topological_order(definition_.roots())) {
    is_cut_ = is_cut_ || SegmentedGraph::cuts_at(*node, false);
    is_opaque_ = is_opaque_ || is_opaque(*node);
    uses_random_ = uses_random_ || is_random(*node);
    makes_sparse_ = makes_sparse_ || SegmentedGraph::makes_sparse(*node);
    has_gradients_ = has_gradients_ || node->op == &kGradientNode.op();
  }
}

GraphCallable::GraphCallable(const Symbol& symbol, const CallOptions& options)
    : GraphCallable(GraphDefinition{symbol.list_inputs(), symbol.outputs}, CompileOptions(options)) {}

// Holds the result of compilation_for() while it is used.
class GraphCallable::CompilationUse {
 public:
  CompilationUse(GraphCallable& function, std::span<const NDArray> inputs, std::span<const uint8_t> wants, bool train)
      : function_(function),
        evictions_(function.evictions_.load(std::memory_order_acquire)),
        call_(function.recent_.take()) {
    if (!call_ || !function.matches(call_->signature, inputs, wants, train))
      call_ = function.compilation_for(inputs, wants, train);
  }
  ~CompilationUse() {
    if (function_.evictions_.load(std::memory_order_acquire) == evictions_) function_.recent_.give(call_);
  }
  CompilationUse(const CompilationUse&) = delete;
  const Ref<Compilation>& call() const { return call_; }

 private:
  GraphCallable& function_;
  const uint64_t evictions_;
  Ref<Compilation> call_;
};

std::vector<NDArray> GraphCallable::call(std::span<const NDArray> inputs, std::span<const NDArray> out,
                                         std::optional<RngKey> key) {
  check_inputs(inputs);
  if (!out.empty() && out.size() != definition_.outputs.size()) {
    throw TypeError({.op = options_.name,
                     .input = "out",
                     .expected = std::to_string(definition_.outputs.size()) + " arrays",
                     .given = std::to_string(out.size())});
  }
  for (const NDArray& target : out) {
    if (!target) throw TypeError({.op = options_.name, .input = "out", .expected = "an array", .given = "none"});
    check_recorded_write(target);
  }
  require_apart(options_.name, out);
  if (!definition_.updates.empty())
    if (const std::vector<NDArray> apart = apart_from_updated(inputs); !apart.empty()) return call(apart, out, key);
  ArrayFlags wants(inputs.size());
  const bool recorded = autograd_state().recording && find_wanted(inputs, wants);
  if (recorded && !out.empty()) return recorded_into(out, call(kept_inputs(inputs, out), {}, key));
  if (definition_.checked && goes_by_parts(inputs)) check_declared(inputs);
  if (!definition_.updates.empty() && (recorded || goes_by_parts(inputs))) return call_and_commit(inputs, out, key);
  Ref<GraphRun> run;
  std::vector<NDArray> results = forward({.inputs = inputs,
                                          .wants = recorded ? wants.span() : std::span<const uint8_t>(),
                                          .train = autograd_state().training,
                                          .out = out,
                                          .key = key},
                                         recorded ? &run : nullptr);
  if (recorded)
    record(Ref<RecordedFunction>(new RecordedRun(Ref<GraphCallable>(this), std::move(run), inputs)), inputs, results);
  return results;
}

// Copies results into `out` by recorded steps of their own; the tape keeps the inputs and results of the call itself.
std::vector<NDArray> GraphCallable::recorded_into(std::span<const NDArray> out, std::vector<NDArray> results) {
  for (size_t i = 0; i < out.size(); ++i) {
    const Op& copy = kCopy.op();
    results[i] = invoke(copy, copy.default_params, {&results[i], 1}, {&out[i], 1})[0];
  }
  return results;
}

// True if a run may be a task. Code outside the library runs on the calling thread, which also reads the indices of
// sparse arrays; so do the parts of a task. Constants are read before the call returns, because later writes do not
// wait for a task.
bool GraphCallable::may_defer(std::span<const NDArray> inputs) const {
  return !is_opaque_ && !constants_.arrays() && !has_sparse(inputs) && !has_gradients_ && !RunHereScope::active();
}

bool GraphCallable::goes_by_parts(std::span<const NDArray> inputs) const {
  if (is_cut_ || has_sparse(inputs)) return true;
  return std::any_of(inputs.begin(), inputs.end(), [](const NDArray& input) { return input.is_pending(); }) &&
         may_defer(inputs);
}

std::vector<NDArray> GraphCallable::forward(const Request& request, Ref<GraphRun>* run) {
  const bool keep = !request.wants.empty();
  forget_stale_plans();
  if (has_gradients_) check_in_one_piece(request.inputs);
  if (!goes_by_parts(request.inputs) && !(keep && is_cut_for_gradient_)) {
    const CompilationUse use(*this, request.inputs, request.wants, request.train);
    const Ref<Compilation>& compiled = use.call();
    if (compiled->form == Compilation::Form::kOnePlan) {
      const RngKey key = request.key ? *request.key : compiled->forward->uses_random() ? next_rng_key() : RngKey{};
      if (request.used_key) *request.used_key = key;
      return run_plan(compiled, request, key, run);
    }
    if (compiled->form == Compilation::Form::kCutAtBranches) {
      if (has_gradients_) throw_in_parts("the branches of a cond in it differ in size");
      // No gradient is wanted here: call() requests it from another function.
      if (!definition_.updates.empty()) return call_and_commit(request.inputs, request.out, request.key);
      return cut_at(compiled->unequal)->forward(request, run);
    }
    if (has_gradients_) throw_in_parts("a while_loop in it has no max_iterations");
    is_cut_for_gradient_ = true;
  }
  const RngKey key = request.key ? *request.key : uses_random_ ? next_rng_key() : RngKey{};
  if (request.used_key) *request.used_key = key;
  TapedResults taped = run_taped(Ref<GraphCallable>(this), {request.inputs, request.wants, request.train, key},
                                 may_defer(request.inputs));
  if (run) *run = std::move(taped.run);
  return copied_to(request.out_may_differ ? std::span<const NDArray>() : request.out, std::move(taped.outputs));
}

Ref<Compilation> GraphCallable::compilation_for_prediction(std::span<const NDArray> inputs) {
  check_inputs(inputs);
  const auto refuse = [&](const char* because) {
    throw UnsupportedError({.op = options_.name,
                            .message = "this graph has no single plan to bind arrays to",
                            .because = because,
                            .fix = "run the model itself"});
  };
  if (is_opaque_) refuse("it calls code outside of the library");
  if (has_sparse(inputs)) refuse("values are sparse");
  if (is_cut_) refuse("sizes depend on values");
  const Ref<Compilation> compiled = compilation_for(inputs, {}, false);
  if (compiled->form == Compilation::Form::kCutAtBranches) refuse("the branches of a cond differ in size");
  return compiled;
}

Ref<Plan> GraphCallable::awake_team_plan(Compilation& compiled) {
  if (cpu_cores() == 1 || !compiled.forward->gains_from_awake_team()) return nullptr;
  const std::lock_guard lock(mutex_);
  if (compiled.awake) return compiled.awake;
  CompileOptions options = options_;
  options.wakes_team = false;
  options.kernels = nullptr;  // the stored kernels are linked for one core
  const RewrittenGraphs rewritten = rewrite_graphs(definition_, compiled.signature, options, false, {});
  return compiled.awake = link_compilation(rewritten, definition_, compiled.signature, options)->forward;
}

std::vector<NDArray> GraphCallable::copied_to(std::span<const NDArray> out, std::vector<NDArray> results) const {
  require_specs(options_.name, out, std::span<const NDArray>(results));
  for (size_t i = 0; i < out.size(); ++i)
    if (!is_same_place(results[i], out[i])) copy_array(results[i], out[i]);
  return out.empty() ? std::move(results) : std::vector<NDArray>(out.begin(), out.end());
}

// -------------------------------------------------------------------------------------------------------------- parts
std::vector<NDArray> GraphCallable::run_parts(std::span<const NDArray> inputs, RngKey key) {
  const bool for_gradient = autograd_state().recording && is_cut_for_gradient_;
  const bool train = autograd_state().training;
  if (has_sparse(inputs)) return segments(for_gradient, train, storages_of(inputs)).run(inputs, key);
  return is_cut_ || for_gradient ? segments(for_gradient, train).run(inputs, key) : call(inputs, {}, key);
}

bool GraphCallable::has_sparse(std::span<const NDArray> inputs) const { return makes_sparse_ || any_sparse(inputs); }

std::vector<StorageType> GraphCallable::storages_of(std::span<const NDArray> inputs) {
  std::vector<StorageType> storages;
  for (const NDArray& input : inputs) storages.push_back(input.storage_type());
  return storages;
}

SegmentedGraph& GraphCallable::segments(bool for_gradient, bool train, const std::vector<StorageType>& storages) {
  const auto find = [&]() -> SegmentedGraph* {
    const std::lock_guard lock(mutex_);
    const auto found = segments_.find({for_gradient, train, storages});
    return found == segments_.end() ? nullptr : found->second.get();
  };
  if (SegmentedGraph* known = find()) return *known;
  // Without the lock: forms of sparse operators are found by running some on one element.
  auto made = std::make_unique<SegmentedGraph>(definition_, options_, for_gradient, train, storages);
  const std::lock_guard lock(mutex_);
  return *segments_.try_emplace({for_gradient, train, storages}, std::move(made)).first->second;
}

Ref<GraphCallable> GraphCallable::cut_at(const std::set<const Node*>& branches) {
  const std::lock_guard lock(mutex_);
  Ref<GraphCallable>& made = cut_at_[branches];
  if (!made) {
    GraphDefinition definition = definition_;
    definition.donated.clear();
    definition.borrowed.clear();
    definition.outputs = with_dynamic_branches(definition_.outputs, branches);
    made = make_ref<GraphCallable>(std::move(definition), options_);
  }
  return made;
}

std::vector<Ref<GraphCallable>> GraphCallable::parts() {
  std::vector<Ref<GraphCallable>> all;
  const std::lock_guard lock(mutex_);
  for (const auto& [branches, function] : cut_at_) all.push_back(function);
  for (const auto& [use, graph] : segments_)
    for (Ref<GraphCallable>& part : graph->functions()) all.push_back(std::move(part));
  return all;
}

Ref<GraphCallable> GraphCallable::copy(bool share_memory, bool delete_updates, const std::string& name) {
  if (share_memory && !delete_updates && name == options_.name) {  // arrays are bound per call: nothing differs
    options_.arenas->take_turns();
    return Ref<GraphCallable>(this);
  }
  GraphDefinition definition = definition_;
  if (delete_updates) {
    definition.updates.clear();
    definition.commits_writebacks = false;
  }
  CompileOptions options = options_;
  options.name = name;
  if (share_memory)
    options.arenas->take_turns();
  else
    options.arenas = nullptr;
  return make_ref<GraphCallable>(std::move(definition), std::move(options));
}

// -------------------------------------------------------------------------------------------------------------- plans
bool GraphCallable::matches(const CallSignature& known, std::span<const NDArray> inputs, std::span<const uint8_t> wants,
                            bool train) const {
  if (known.train != train || !std::equal(wants.begin(), wants.end(), known.wants.begin(), known.wants.end()) ||
      known.heads != expected_heads(wants))
    return false;
  const bool on_gpu = known.device.type == DeviceType::kGPU;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!(inputs[i].spec() == known.inputs[i])) return false;
    if (inputs[i].is_on_gpu() != on_gpu || (on_gpu && !(inputs[i].device() == known.device))) return false;
  }
  return true;
}

Ref<Compilation> GraphCallable::compilation_for(std::span<const NDArray> inputs, std::span<const uint8_t> wants,
                                                bool train) {
  constants_.wait();  // compiling reads them; without the mutex, which the awaited tasks may need
  const std::lock_guard lock(mutex_);
  for (auto it = compiled_.begin(); it != compiled_.end(); ++it) {
    if (!matches((*it)->signature, inputs, wants, train)) continue;
    if (it != compiled_.begin()) compiled_.splice(compiled_.begin(), compiled_, it);
    return compiled_.front();
  }
  if (definition_.checked) check_declared(inputs);
  CallSignature signature;
  signature.device = common_device(inputs);
  for (const NDArray& input : inputs) signature.inputs.push_back(input.spec());
  signature.wants.assign(wants.begin(), wants.end());
  signature.train = train;
  signature.heads = expected_heads(wants);
  try {
    const profile::Scope profiled(task_name_, "compile");
    ValueComparison comparison(definition_.inputs, inputs);
    const Query query = QueryScope::applied_to(options_.query);
    if (query.debug)
      for (const NDArray& input : inputs) input.wait_to_read();
    const PipelineScope scope({.query = query, .observer = query.debug ? &comparison : nullptr});
    compiled_.push_front(compiler_.compile(signature));
  } catch (const UnequalBranchesError& error) {
    compiled_.push_front(make_ref<Compilation>());
    compiled_.front()->signature = signature;
    compiled_.front()->form = Compilation::Form::kCutAtBranches;
    compiled_.front()->unequal = error.branches;
  } catch (const UnboundedLoopError&) {
    compiled_.push_front(make_ref<Compilation>());
    compiled_.front()->signature = signature;
    compiled_.front()->form = Compilation::Form::kBySteps;
  } catch (Error& error) {
    error.add_context({.block = options_.name});
    throw;
  }
  forget_oldest_plans();
  return compiled_.front();
}

int64_t GraphCallable::held_bytes() const {
  std::set<const Plan::Linked*> shared;
  int64_t bytes = 0;
  for (const Ref<Compilation>& call : compiled_) {
    bytes += call->held_bytes();
    for (const Ref<Plan>& plan : {call->forward, call->backward})
      if (plan && shared.insert(plan->linked().get()).second) bytes += plan->linked()->held_bytes();
  }
  return bytes;
}

void GraphCallable::forget_stale_plans() {
  if (!constants_.have_changed()) return;
  const std::lock_guard lock(mutex_);
  compiler_.forget();
  compiled_.clear();
  gradients_.clear();
  evictions_.fetch_add(1, std::memory_order_release);
  recent_.sweep([](const Compilation&) { return false; });
}

// Called with mutex_ held. Calls that run keep their plans alive.
void GraphCallable::forget_oldest_plans() {
  const Environment& env = environment();
  const auto too_many = [&] {
    return compiled_.size() > static_cast<size_t>(env.plan_limit) ||
           (env.plan_limit_mb >= 0 && held_bytes() > env.plan_limit_mb << 20);
  };
  const size_t before = compiled_.size();
  while (compiled_.size() > 1 && too_many()) compiled_.pop_back();
  if (compiled_.size() == before) return;
  evictions_.fetch_add(1, std::memory_order_release);
  recent_.sweep([](const Compilation&) { return false; });
}

}  // namespace hybridnet
