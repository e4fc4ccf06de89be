#include "plan/graph_function.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "engine/profile.h"
#include "engine/sound_writes.h"
#include "graph/control/control_flow.h"
#include "graph/control/unequal_branches.h"
#include "hybridnet/env.h"
#include "imperative/autograd_scope.h"
#include "imperative/sparse_operators.h"
#include "passes/control_gradient.h"
#include "passes/loops/commit_states.h"
#include "plan/task.h"
#include "plan/value_comparison.h"

namespace hybridnet {
namespace {

const OpRef kAdd{"elemwise_add"}, kCopy{"_copy"}, kGradientNode{"_gradient"}, kZerosLike{"zeros_like"};

// A recorded call of a graph function: one step on the tape.
class RecordedCall final : public RecordedFunction {
 public:
  RecordedCall(Ref<GraphFunction> function, Ref<GraphRun> run, std::span<const NDArray> inputs)
      : function_(std::move(function)), run_(std::move(run)), inputs_(inputs.begin(), inputs.end()) {}

  std::string name() const override { return function_->options().name; }
  bool returns_fresh_arrays() const override { return true; }
  bool takes_sparse_gradients() const override { return true; }
  std::vector<Value> as_graph(std::span<const Value> inputs) const override {
    return function_->definition().applied_to(inputs);
  }
  std::vector<NDArray> backward(std::span<const NDArray> out_grads, bool create_graph) override {
    return create_graph ? run_->differentiable_backward(inputs_, out_grads) : run_->backward(out_grads, {});
  }
  std::vector<NDArray> backward_into(std::span<const NDArray> out_grads, std::span<const NDArray> into) override {
    return run_->backward(out_grads, into);
  }
  void free_residuals() override {
    inputs_.clear();
    run_ = nullptr;
  }

 private:
  const Ref<GraphFunction> function_;
  Ref<GraphRun> run_;
  std::vector<NDArray> inputs_;
};

uint64_t overwrites_of(const NDArray& array) { return array.impl()->chunk->overwrites.load(std::memory_order_relaxed); }

// One flag per array, on the stack for few.
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

// May a plan write straight into `target`, while it reads `inputs`?
bool may_write(const NDArray& target, const TensorSpec& spec, std::span<const NDArray> inputs,
               const std::vector<NDArray>& others) {
  auto shared = [&](const NDArray& other) { return other && other.shares_memory(target); };
  return target.spec() == spec && !target.is_sparse() && std::none_of(inputs.begin(), inputs.end(), shared) &&
         std::none_of(others.begin(), others.end(), shared);
}

// May results be written into the memory of an array that is given away? Not if another array shows it, or if it is not
// ours.
bool may_take_over(const NDArray& given, std::span<const NDArray> inputs) {
  if (given.is_sparse() || given.is_pending()) return false;
  const Chunk& chunk = *given.impl()->chunk;
  if (chunk.ref_count() != 1 || !chunk.owns_block()) return false;
  return std::count_if(inputs.begin(), inputs.end(),
                       [&](const NDArray& other) { return other.shares_memory(given); }) == 1;
}

NDArray taken_over(const NDArray& given, const TensorSpec& spec) {
  note_overwrite(given);
  Ref<ArrayImpl> impl = make_ref<ArrayImpl>();
  impl->spec = spec;
  impl->chunk = given.impl()->chunk;
  impl->offset = given.impl()->offset;
  return NDArray(std::move(impl));
}

NDArray sum_of(const NDArray& a, const NDArray& b) {
  const NDArray terms[] = {a, b};
  return invoke_one(kAdd.op(), kAdd.op().default_params, terms);
}

void copy_array(const NDArray& from, const NDArray& to) {
  invoke(kCopy.op(), kCopy.op().default_params, {&from, 1}, {&to, 1});
}

}  // namespace

// A run of a plan.
class GraphFunction::PlanRun final : public GraphRun {
 public:
  PlanRun(Ref<GraphFunction> graph, Ref<CompiledCall> call) : function(std::move(graph)), compiled(std::move(call)) {}

  bool reads_head(size_t output) const override {
    return std::any_of(compiled->sources.begin(), compiled->sources.end(), [&](const BackwardInput& source) {
      return source.kind == BackwardInput::Kind::kHead && static_cast<size_t>(source.index) == output;
    });
  }
  std::vector<NDArray> backward(std::span<const NDArray> heads, std::span<const NDArray> into) override {
    return function->run_backward(*this, heads, into);
  }
  std::vector<NDArray> differentiable_backward(std::span<const NDArray> inputs,
                                               std::span<const NDArray> heads) override {
    return function->run_differentiable_backward(*this, inputs, heads);
  }

  struct Saved {
    NDArray array;
    uint64_t overwrites = 0;
  };
  const Ref<GraphFunction> function;
  const Ref<CompiledCall> compiled;
  std::vector<Saved> sources;  // parallel to compiled->sources; heads are empty
  NDArray residuals;
  std::shared_ptr<KeptObjects> kept;  // null: the plans have no opaque instruction
  RngKey key;
};

// Gradients for one signature, themselves callable and differentiable.
struct GraphFunction::GradientFunction {
  GradientDefinition definition;
  Ref<GraphFunction> function;
};

GraphFunction::GraphFunction(GraphDefinition definition, CompileOptions options)
    : definition_(std::move(definition)), options_(std::move(options)), compiler_(definition_, options_) {
  if (options_.name.empty()) options_.name = "CachedOp";
  if (!options_.arenas) options_.arenas = make_ref<ArenaPool>();
  options_.weights_change = options_.weights_change || !definition_.updates.empty();
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

void GraphFunction::check_in_one_piece(std::span<const NDArray> inputs) const {
  if (is_cut_) throw_in_parts("the shape of some value in it depends on data");
  if (has_sparse(inputs)) throw_in_parts("some value in it is sparse");
}

void GraphFunction::throw_in_parts(std::string because) const {
  throw UnsupportedError({.op = options_.name,
                          .message = "a graph with gradients in it runs in one piece only",
                          .because = std::move(because),
                          .fix = "differentiate by autograd.record() and backward() instead"});
}

void GraphFunction::check_inputs(std::span<const NDArray> inputs) const {
  if (inputs.size() != definition_.inputs.size()) {
    throw TypeError({.op = options_.name,
                     .expected = std::to_string(definition_.inputs.size()) + " inputs",
                     .given = std::to_string(inputs.size())});
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i]) continue;
    throw TypeError(
        {.op = options_.name, .input = definition_.inputs[i]->name, .expected = "an array", .given = "none"});
  }
  if (!definition_.checked) return;
  for (size_t i = 1; i < inputs.size(); ++i) {
    if (inputs[i].device() == inputs[0].device()) continue;
    throw ValueError(
        {.op = options_.name,
         .input = definition_.inputs[i]->name,
         .expected = "an array on " + inputs[0].device().str() + ", where '" + definition_.inputs[0]->name + "' is",
         .given = "one on " + inputs[i].device().str(),
         .fix = "copy it there: x.as_in_context(...)"});
  }
}

// Against what the variables say of themselves. Called for signatures that have not been seen.
void GraphFunction::check_declared(std::span<const NDArray> inputs) const {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].is_pending()) continue;
    const Node& variable = *definition_.inputs[i];
    const TensorSpec want = declared_spec(variable);
    const TensorSpec& given = inputs[i].spec();
    const ErrorFields subject{.op = options_.name, .input = variable.name};
    if (want.dtype != DType::kUnknown && want.dtype != given.dtype) {
      ErrorFields fields = subject;
      fields.expected = std::string("elements of type ") + dtype_name(want.dtype);
      fields.given = dtype_name(given.dtype);
      fields.fix = "convert the array: x.astype('" + std::string(dtype_name(want.dtype)) + "')";
      throw DTypeError(std::move(fields));
    }
    if (!want.shape.rank_known()) continue;
    ErrorFields fields = subject;
    fields.given = given.shape.str();
    if (want.shape.ndim() != given.shape.ndim()) {
      fields.expected = "an array of " + std::to_string(want.shape.ndim()) + " dimensions, " + want.shape.str();
      fields.given = std::to_string(given.shape.ndim()) + ", " + given.shape.str();
      fields.fix = "reshape the array, or declare another shape of the variable";
      throw ShapeError(std::move(fields));
    }
    for (int axis = 0; axis < want.shape.ndim(); ++axis) {
      if (want.shape[axis] == kUnknownDim || want.shape[axis] == given.shape[axis]) continue;
      fields.expected = "shape " + want.shape.str();
      fields.because = "axis " + std::to_string(axis) + " has size " + std::to_string(want.shape[axis]) + " there";
      fields.fix = "pass an array of that size, or declare the variable with 0 where any size may come";
      throw ShapeError(std::move(fields));
    }
  }
}

std::vector<NDArray> GraphFunction::call(std::span<const NDArray> inputs, std::span<const NDArray> out,
                                         std::optional<RngKey> key) {
  check_inputs(inputs);
  if (!out.empty() && out.size() != definition_.outputs.size()) {
    throw TypeError({.op = options_.name,
                     .input = "out",
                     .expected = std::to_string(definition_.outputs.size()) + " arrays",
                     .given = std::to_string(out.size())});
  }
  for (const NDArray& target : out)
    if (!target) throw TypeError({.op = options_.name, .input = "out", .expected = "an array", .given = "none"});
  if (!definition_.updates.empty())
    if (const std::vector<NDArray> apart = apart_from_updated(inputs); !apart.empty()) return call(apart, out, key);
  ArrayFlags wants(inputs.size());
  const bool recorded = autograd_state().recording && find_wanted(inputs, wants);
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
    record(Ref<RecordedFunction>(new RecordedCall(Ref<GraphFunction>(this), std::move(run), inputs)), inputs, results);
  return results;
}

// Code outside the library runs on the calling thread, where also the indices of sparse arrays are looked at; so do the
// parts of a task.
bool GraphFunction::may_defer(std::span<const NDArray> inputs) const {
  return !is_opaque_ && !has_sparse(inputs) && !has_gradients_ && !RunHereScope::active();
}

bool GraphFunction::goes_by_parts(std::span<const NDArray> inputs) const {
  if (is_cut_ || has_sparse(inputs)) return true;
  return std::any_of(inputs.begin(), inputs.end(), [](const NDArray& input) { return input.is_pending(); }) &&
         may_defer(inputs);
}

std::vector<NDArray> GraphFunction::forward(const Request& request, Ref<GraphRun>* run) {
  const bool keep = !request.wants.empty();
  if (has_gradients_) check_in_one_piece(request.inputs);
  if (!goes_by_parts(request.inputs) && !(keep && is_cut_for_gradient_)) {
    try {
      const Ref<CompiledCall> compiled = compiled_for(request.inputs, request.wants, request.train);
      if (!compiled->unequal.empty()) {
        if (has_gradients_) throw_in_parts("the branches of a cond in it differ in size");
        // Without a gradient, which call() asks of another function.
        if (!definition_.updates.empty()) return call_and_commit(request.inputs, request.out, request.key);
        return cut_at(compiled->unequal)->forward(request, run);
      }
      const RngKey key = request.key ? *request.key : compiled->forward->uses_random() ? next_rng_key() : RngKey{};
      if (request.used_key) *request.used_key = key;
      return run_plan(compiled, request, key, run);
    } catch (const UnboundedLoopError&) {
      if (has_gradients_) throw_in_parts("a while_loop in it has no max_iterations");
      is_cut_for_gradient_ = true;
    }
  }
  const RngKey key = request.key ? *request.key : uses_random_ ? next_rng_key() : RngKey{};
  if (request.used_key) *request.used_key = key;
  TapedResults taped = run_taped(Ref<GraphFunction>(this), {request.inputs, request.wants, request.train, key},
                                 may_defer(request.inputs));
  if (run) *run = std::move(taped.run);
  return copied_to(request.out_may_differ ? std::span<const NDArray>() : request.out, std::move(taped.outputs));
}

Ref<CompiledCall> GraphFunction::compiled_for_prediction(std::span<const NDArray> inputs) {
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
  const Ref<CompiledCall> compiled = compiled_for(inputs, {}, false);
  if (!compiled->unequal.empty()) refuse("the branches of a cond differ in size");
  return compiled;
}

std::vector<NDArray> GraphFunction::copied_to(std::span<const NDArray> out, std::vector<NDArray> results) {
  for (size_t i = 0; i < out.size(); ++i)
    if (!results[i].shares_memory(out[i])) copy_array(results[i], out[i]);
  return out.empty() ? std::move(results) : std::vector<NDArray>(out.begin(), out.end());
}

// ------------------------------------------------------------------------------------------------------------ updates
std::vector<NDArray> GraphFunction::apart_from_updated(std::span<const NDArray> inputs) const {
  std::vector<NDArray> apart;
  for (const Graph::Writeback& update : definition_.updates) {
    const auto target = static_cast<size_t>(update.input);
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (i == target || !inputs[i].shares_memory(inputs[target])) continue;
      const auto is_its = [i](const Graph::Writeback& other) { return other.input == static_cast<int>(i); };
      if (std::any_of(definition_.updates.begin(), definition_.updates.end(), is_its))
        throw ValueError(
            {.op = options_.name,
             .input = definition_.inputs[i]->name,
             .message = "it shares memory with '" + definition_.inputs[target]->name + "', and both are updated",
             .fix = "give each of them an array of its own"});
      if (apart.empty()) apart.assign(inputs.begin(), inputs.end());
      apart[i] = invoke_one(kCopy.op(), kCopy.op().default_params, {&inputs[i], 1});
    }
  }
  return apart;
}

Ref<GraphFunction> GraphFunction::with_updates_as_outputs() {
  const std::lock_guard lock(mutex_);
  if (!with_updates_as_outputs_) {
    GraphDefinition definition = definition_;
    definition.outputs = definition.roots();
    definition.updates.clear();
    definition.donated.clear();
    definition.borrowed.clear();
    definition.checked = false;
    with_updates_as_outputs_ = make_ref<GraphFunction>(std::move(definition), options_);
  }
  return with_updates_as_outputs_;
}

std::vector<NDArray> GraphFunction::call_and_commit(std::span<const NDArray> inputs, std::span<const NDArray> out,
                                                    std::optional<RngKey> key) {
  const Ref<GraphFunction> function = with_updates_as_outputs();
  // Gradients, which may be asked for after the commit, are those of the copies. States that operators write are copied
  // without a step on the tape: gradients do not pass through them.
  std::vector<NDArray> given(inputs.begin(), inputs.end());
  std::vector<std::pair<size_t, NDArray>> values;
  const auto copied = [](const NDArray& array) {
    return invoke_one(kCopy.op(), kCopy.op().default_params, {&array, 1});
  };
  for (const Graph::Writeback& update : definition_.updates) {
    const auto input = static_cast<size_t>(update.input);
    given[input] = copied(inputs[input]);
  }
  if (definition_.atomic) {
    const std::vector<uint8_t> written = function->written_inputs(autograd_state().training);
    for (size_t i = 0; i < written.size(); ++i) {
      if (written[i] == 0) continue;
      const AutogradScope unrecorded({.recording = false, .training = autograd_state().training});
      given[i] = copied(inputs[i]);
      values.emplace_back(i, given[i]);
    }
  }
  std::vector<NDArray> results = function->call(given, {}, key);
  for (size_t i = 0; i < definition_.updates.size(); ++i)
    values.emplace_back(definition_.updates[i].input, results[definition_.outputs.size() + i].detached());
  commit(inputs, std::move(values));
  results.resize(definition_.outputs.size());
  return copied_to(out, std::move(results));
}

// One task for all, which runs only if what forms the values has succeeded.
void GraphFunction::commit(std::span<const NDArray> inputs, std::vector<std::pair<size_t, NDArray>> values) const {
  std::vector<NDArray> targets, sources;
  std::vector<std::string> names;
  std::vector<Var*> sound;
  int64_t bytes = 0;
  for (const auto& [input, value] : values) {
    note_overwrite(inputs[input]);
    targets.push_back(inputs[input].detached());
    sources.push_back(value);
    names.push_back(definition_.inputs[input]->name);
    sound.push_back(&inputs[input].var());
    bytes += inputs[input].bytes();
  }
  if (!definition_.atomic || definition_.outputs.empty()) sound.clear();
  const SoundWrites stay_sound(sound);
  run_task(task_name_, sources, targets, bytes / 8, [targets, sources, names](TaskContext&) {
    for (size_t i = 0; i < targets.size(); ++i) {
      if (targets[i].spec() == sources[i].spec()) continue;
      throw ShapeError({.input = names[i],
                        .expected = "an update of " + targets[i].spec().str() + ", as the variable holds",
                        .given = sources[i].spec().str()});
    }
    for (size_t i = 0; i < targets.size(); ++i)
      if (const int64_t size = targets[i].bytes(); size > 0)
        std::memcpy(targets[i].data(), sources[i].data(), static_cast<size_t>(size));
  });
}

// -------------------------------------------------------------------------------------------------------------- parts
std::vector<NDArray> GraphFunction::run_parts(std::span<const NDArray> inputs, RngKey key) {
  const bool for_gradient = autograd_state().recording && is_cut_for_gradient_;
  if (has_sparse(inputs)) return segments(for_gradient, storages_of(inputs)).run(inputs, key);
  return is_cut_ || for_gradient ? segments(for_gradient).run(inputs, key) : call(inputs, {}, key);
}

bool GraphFunction::has_sparse(std::span<const NDArray> inputs) const { return makes_sparse_ || any_sparse(inputs); }

std::vector<StorageType> GraphFunction::storages_of(std::span<const NDArray> inputs) {
  std::vector<StorageType> storages;
  for (const NDArray& input : inputs) storages.push_back(input.storage_type());
  return storages;
}

SegmentedGraph& GraphFunction::segments(bool for_gradient, const std::vector<StorageType>& storages) {
  const auto find = [&]() -> SegmentedGraph* {
    const std::lock_guard lock(mutex_);
    const auto found = segments_.find({for_gradient, storages});
    return found == segments_.end() ? nullptr : found->second.get();
  };
  if (SegmentedGraph* known = find()) return *known;
  // Without the lock: forms of sparse operators are found by running some on one element.
  auto made = std::make_unique<SegmentedGraph>(definition_, options_, for_gradient, storages);
  const std::lock_guard lock(mutex_);
  return *segments_.try_emplace({for_gradient, storages}, std::move(made)).first->second;
}

Ref<GraphFunction> GraphFunction::cut_at(const std::set<const Node*>& branches) {
  const std::lock_guard lock(mutex_);
  Ref<GraphFunction>& made = cut_at_[branches];
  if (!made) {
    GraphDefinition definition = definition_;
    definition.donated.clear();
    definition.borrowed.clear();
    definition.outputs = with_dynamic_branches(definition_.outputs, branches);
    made = make_ref<GraphFunction>(std::move(definition), options_);
  }
  return made;
}

std::vector<Ref<GraphFunction>> GraphFunction::parts() {
  std::vector<Ref<GraphFunction>> all;
  const std::lock_guard lock(mutex_);
  for (const auto& [branches, function] : cut_at_) all.push_back(function);
  for (const auto& [use, graph] : segments_)
    for (Ref<GraphFunction>& part : graph->functions()) all.push_back(std::move(part));
  return all;
}

Ref<GraphFunction> GraphFunction::without_writebacks() {
  const std::lock_guard lock(mutex_);
  if (!without_writebacks_) {
    GraphDefinition definition = definition_;
    definition.commits_writebacks = false;
    definition.updates.clear();
    without_writebacks_ = make_ref<GraphFunction>(std::move(definition), options_);
    without_writebacks_->is_cut_for_gradient_ = is_cut_for_gradient_.load();
  }
  return without_writebacks_;
}

Ref<GraphFunction> GraphFunction::copy(bool share_memory, bool delete_updates, const std::string& name) {
  if (share_memory && !delete_updates && name == options_.name) {  // arrays are bound per call: nothing differs
    options_.arenas->take_turns();
    return Ref<GraphFunction>(this);
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
  return make_ref<GraphFunction>(std::move(definition), std::move(options));
}

std::vector<uint8_t> GraphFunction::written_inputs(bool train) {
  std::vector<uint8_t> written(definition_.inputs.size());
  for (const Graph::Writeback& update : definition_.updates) written[static_cast<size_t>(update.input)] = 1;
  if (!definition_.commits_writebacks) return written;
  std::unordered_map<const Node*, size_t> number;
  for (size_t i = 0; i < definition_.inputs.size(); ++i) number[definition_.inputs[i].get()] = i;
  for (const Node* node : topological_order(definition_.outputs)) {
    if (!updates_states(*node, train)) continue;
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      const auto found = number.find(node->inputs[i].node.get());
      if (found != number.end() && is_auxiliary_input(*node, i)) written[found->second] = 1;
    }
  }
  return written;
}

// -------------------------------------------------------------------------------------------------------------- plans
bool GraphFunction::matches(const CallSignature& known, std::span<const NDArray> inputs, std::span<const uint8_t> wants,
                            bool train) const {
  if (known.train != train || !std::equal(wants.begin(), wants.end(), known.wants.begin(), known.wants.end()))
    return false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!(inputs[i].spec() == known.inputs[i])) return false;
  }
  return true;
}

Ref<CompiledCall> GraphFunction::compiled_for(std::span<const NDArray> inputs, std::span<const uint8_t> wants,
                                              bool train) {
  const std::lock_guard lock(mutex_);
  for (auto it = compiled_.begin(); it != compiled_.end(); ++it) {
    if (!matches((*it)->signature, inputs, wants, train)) continue;
    if (it != compiled_.begin()) compiled_.splice(compiled_.begin(), compiled_, it);
    return compiled_.front();
  }
  if (definition_.checked) check_declared(inputs);
  CallSignature signature;
  for (const NDArray& input : inputs) signature.inputs.push_back(input.spec());
  signature.wants.assign(wants.begin(), wants.end());
  signature.train = train;
  try {
    const profile::Scope profiled(task_name_, "compile");
    ValueComparison comparison(definition_.inputs, inputs);
    const Query query = QueryScope::applied_to(options_.query);
    if (query.debug)
      for (const NDArray& input : inputs) input.wait_to_read();
    const PipelineScope scope({.query = query, .observer = query.debug ? &comparison : nullptr});
    compiled_.push_front(compiler_.compile(signature));
  } catch (const UnequalBranchesError& error) {
    auto call = make_ref<CompiledCall>();
    call->signature = signature;
    call->unequal = error.branches;
    compiled_.push_front(call);
  } catch (Error& error) {
    error.add_context({.block = options_.name});
    throw;
  }
  forget_oldest_plans();
  return compiled_.front();
}

int64_t GraphFunction::held_bytes() const {
  std::set<const Plan::Linked*> shared;
  int64_t bytes = 0;
  for (const Ref<CompiledCall>& call : compiled_) {
    bytes += call->held_bytes();
    for (const Ref<Plan>& plan : {call->forward, call->backward})
      if (plan && shared.insert(plan->linked().get()).second) bytes += plan->linked()->held_bytes();
  }
  return bytes;
}

// Called with mutex_ held. Calls that run keep their plans alive.
void GraphFunction::forget_oldest_plans() {
  const Environment& env = environment();
  const auto too_many = [&] {
    return compiled_.size() > static_cast<size_t>(env.plan_limit) ||
           (env.plan_limit_mb >= 0 && held_bytes() > env.plan_limit_mb << 20);
  };
  while (compiled_.size() > 1 && too_many()) compiled_.pop_back();
}

std::vector<NDArray> GraphFunction::run_plan(const Ref<CompiledCall>& compiled, const Request& request, RngKey key,
                                             Ref<GraphRun>* run) {
  const Plan& plan = *compiled->forward;
  const std::span<const NDArray> inputs = request.inputs;
  std::span<const NDArray> out = request.out;
  if (request.out_may_differ &&
      !std::equal(out.begin(), out.end(), plan.outputs().begin(), plan.outputs().end(),
                  [](const NDArray& array, const Plan::OutputInfo& info) { return array.spec() == info.spec; }))
    out = {};
  const Device device = inputs.empty() ? Device{} : inputs[0].device();
  std::vector<NDArray> fresh(plan.fresh_outputs().size());
  for (size_t i = 0; i < out.size(); ++i) {
    const Plan::OutputInfo& info = plan.outputs()[i];
    NDArray& place = fresh[static_cast<size_t>(info.fresh)];
    note_overwrite(out[i]);
    if (!place && plan.fresh_outputs()[static_cast<size_t>(info.fresh)] == info.spec &&
        may_write(out[i], info.spec, inputs, fresh)) {
      place = out[i];
    }
  }
  if (request.wants.empty() && out.empty()) {
    for (const Plan::Donation& donation : plan.donations())
      if (const NDArray& given = inputs[static_cast<size_t>(donation.input)]; may_take_over(given, inputs))
        fresh[static_cast<size_t>(donation.fresh)] =
            taken_over(given, plan.fresh_outputs()[static_cast<size_t>(donation.fresh)]);
    if (!definition_.borrowed.empty()) lend_borrowed(compiled, device, fresh);
  }
  for (size_t i = 0; i < fresh.size(); ++i) {
    if (!fresh[i]) fresh[i] = NDArray::deferred(plan.fresh_outputs()[i], device);
  }
  NDArray residuals;
  if (plan.residual_bytes() > 0) residuals = NDArray::deferred({Shape{plan.residual_bytes()}, DType::kUInt8}, device);
  for (const int input : plan.written_inputs()) note_overwrite(inputs[static_cast<size_t>(input)]);
  std::shared_ptr<KeptObjects> kept;
  if (plan.is_opaque()) kept = std::make_shared<KeptObjects>();
  const bool stay_sound = definition_.atomic && !fresh.empty() && !plan.written_inputs().empty();
  push_plan(compiled->forward, {inputs, fresh, residuals, kept.get(), stay_sound}, key, task_name_);

  std::vector<NDArray> results;
  results.reserve(plan.outputs().size());
  std::vector<bool> given(fresh.size());
  for (const Plan::OutputInfo& info : plan.outputs()) {
    const NDArray& array = fresh[static_cast<size_t>(info.fresh)];
    const bool first = !given[static_cast<size_t>(info.fresh)];
    given[static_cast<size_t>(info.fresh)] = true;
    results.push_back(first && array.spec() == info.spec ? array : array.reshaped(info.spec.shape));
  }
  if (run && !request.wants.empty()) {
    auto made = make_ref<PlanRun>(Ref<GraphFunction>(this), compiled);
    made->key = key;
    made->residuals = residuals;
    made->kept = std::move(kept);
    for (const BackwardInput& source : compiled->sources) {
      NDArray array;
      if (source.kind == BackwardInput::Kind::kForwardInput) array = inputs[static_cast<size_t>(source.index)];
      if (source.kind == BackwardInput::Kind::kForwardOutput)
        array = results[static_cast<size_t>(source.index)].detached();
      if (source.kind == BackwardInput::Kind::kResidual) {
        const Plan::ResidualPlace& place = plan.residuals()[static_cast<size_t>(source.index)];
        if (place.in_output) array = fresh[static_cast<size_t>(place.fresh)].detached();
      }
      if (array) watch_overwrites(*array.impl()->chunk);
      made->sources.push_back({array, array ? overwrites_of(array) : 0});
    }
    *run = Ref<GraphRun>(made.get());
  }
  return copied_to(out, std::move(results));
}

// Results that the caller only borrows go into the arrays of the call before.
void GraphFunction::lend_borrowed(const Ref<CompiledCall>& compiled, Device device, std::vector<NDArray>& fresh) {
  const Plan& plan = *compiled->forward;
  std::vector<bool> may_lend(fresh.size(), true);
  for (size_t i = 0; i < plan.outputs().size(); ++i)
    if (definition_.borrowed[i] == 0) may_lend[static_cast<size_t>(plan.outputs()[i].fresh)] = false;
  const std::lock_guard lock(mutex_);
  compiled->borrowed.resize(fresh.size());
  for (size_t i = 0; i < fresh.size(); ++i) {
    if (fresh[i] || !may_lend[i]) continue;
    NDArray& kept = compiled->borrowed[i];
    if (!kept) kept = NDArray::deferred(plan.fresh_outputs()[i], device);
    note_overwrite(kept);
    fresh[i] = kept.detached();
  }
}

std::vector<NDArray> GraphFunction::run_backward(const PlanRun& run, std::span<const NDArray> heads,
                                                 std::span<const NDArray> into) {
  const CompiledCall& compiled = *run.compiled;
  std::vector<NDArray> gradients(compiled.gradient_of_input.size());
  if (!compiled.backward) return gradients;
  const Plan& plan = *compiled.backward;
  std::vector<NDArray> inputs;
  inputs.reserve(compiled.sources.size());
  for (size_t i = 0; i < compiled.sources.size(); ++i) {
    const BackwardInput& source = compiled.sources[i];
    const PlanRun::Saved& saved = run.sources[i];
    if (source.kind == BackwardInput::Kind::kHead) {
      const TensorSpec& spec = compiled.forward->outputs()[static_cast<size_t>(source.index)].spec;
      NDArray head = heads[static_cast<size_t>(source.index)];
      if (!head) {
        head = NDArray::deferred(spec);
        push_zeros(head);
      }
      inputs.push_back(to_dense(head));
      continue;
    }
    if (saved.array) {
      if (saved.array.impl()->chunk->overwritten_since(saved.overwrites)) throw_overwritten(source, saved.array);
      inputs.push_back(saved.array);
      continue;
    }
    const Plan::ResidualPlace& place = compiled.forward->residuals()[static_cast<size_t>(source.index)];
    if (!run.residuals) {  // all that was kept has no elements
      inputs.push_back(NDArray::empty(Shape{0}, DType::kUInt8));
      continue;
    }
    inputs.push_back(run.residuals.sliced(place.offset, run.residuals.size()));
  }
  const Device device = inputs.empty() ? Device{} : inputs[0].device();
  std::vector<NDArray> fresh(plan.fresh_outputs().size());
  for (size_t i = 0; i < into.size(); ++i) {
    const int output = compiled.gradient_of_input[i];
    if (!into[i] || output < 0) continue;
    NDArray& place = fresh[static_cast<size_t>(plan.outputs()[static_cast<size_t>(output)].fresh)];
    if (!place && may_write(into[i], plan.outputs()[static_cast<size_t>(output)].spec, inputs, fresh)) place = into[i];
  }
  for (size_t i = 0; i < fresh.size(); ++i) {
    if (!fresh[i]) fresh[i] = NDArray::deferred(plan.fresh_outputs()[i], device);
  }
  push_plan(compiled.backward, {inputs, fresh, NDArray(), run.kept.get()}, run.key, task_name_);
  const auto result = [&](int output) {
    const Plan::OutputInfo& info = plan.outputs()[static_cast<size_t>(output)];
    const NDArray& array = fresh[static_cast<size_t>(info.fresh)];
    return array.spec() == info.spec ? array : array.reshaped(info.spec.shape);
  };
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (compiled.gradient_of_input[i] >= 0) gradients[i] = result(compiled.gradient_of_input[i]);
    for (const RowsOfGradient& term : compiled.rows_of_input[i]) {
      const NDArray rows =
          row_sparse_gradient(compiled.signature.inputs[i].shape, result(term.values), result(term.rows), term.mode);
      gradients[i] = gradients[i] ? sum_of(gradients[i], rows) : rows;
    }
  }
  return gradients;
}

void GraphFunction::throw_overwritten(const BackwardInput& source, const NDArray& array) const {
  const Chunk& chunk = array.impl()->chunk->owner();
  const SourceLocation written{chunk.overwrite_file.load(std::memory_order_relaxed),
                               chunk.overwrite_line.load(std::memory_order_relaxed)};
  ErrorFields fields;
  fields.op = options_.name;
  fields.input = source.kind == BackwardInput::Kind::kForwardInput
                     ? definition_.inputs[static_cast<size_t>(source.index)]->name
                     : "an output";
  fields.message = "the value that its gradient needs was overwritten in place";
  fields.because = "it was overwritten at " + (written.known() ? written.str() : std::string("an unknown line"));
  fields.fix = "write to a new array (y = x + 1 instead of x += 1), or copy first: x.copy()";
  throw GradientError(std::move(fields));
}

std::shared_ptr<GraphFunction::GradientFunction> GraphFunction::gradient_function(const CallSignature& signature) {
  const std::lock_guard lock(mutex_);
  for (const auto& [known, function] : gradients_) {
    if (known == signature) return function;
  }
  auto made = std::make_shared<GradientFunction>();
  made->definition = make_gradient_definition(definition_, signature, options_);
  CompileOptions options = options_;
  options.name += "_backward";
  made->function = make_ref<GraphFunction>(made->definition.graph, options);
  if (gradients_.size() >= static_cast<size_t>(environment().plan_limit)) gradients_.erase(gradients_.begin());
  gradients_.emplace_back(signature, made);
  return made;
}

std::vector<NDArray> GraphFunction::run_differentiable_backward(const PlanRun& run, std::span<const NDArray> inputs,
                                                                std::span<const NDArray> heads) {
  const std::shared_ptr<GradientFunction> gradient = gradient_function(run.compiled->signature);
  std::vector<NDArray> all(inputs.begin(), inputs.end());
  for (const int output : gradient->definition.heads) {
    NDArray head = heads[static_cast<size_t>(output)];
    if (!head) {
      const NDArray like = NDArray::empty(run.compiled->forward->outputs()[static_cast<size_t>(output)].spec);
      head = invoke_one(kZerosLike.op(), kZerosLike.op().default_params, {&like, 1});
    }
    all.push_back(head);
  }
  std::vector<NDArray> gradients(inputs.size());
  if (gradient->definition.of_inputs.empty()) return gradients;
  std::vector<NDArray> results;
  {
    // In the mode of the forward run, which is repeated here.
    const AutogradState state{.recording = autograd_state().recording, .training = run.compiled->signature.train};
    const AutogradScope scope(state);
    results = gradient->function->call(all, {}, run.key);
  }
  for (size_t i = 0; i < results.size(); ++i) {
    gradients[static_cast<size_t>(gradient->definition.of_inputs[i])] = results[i];
  }
  return gradients;
}

namespace {

int64_t memory_of(const CompiledCall& compiled) {
  if (!compiled.forward) return 0;  // what its parts take is counted there
  const Plan& forward = *compiled.forward;
  int64_t bytes = forward.arena_bytes() + forward.residual_bytes();
  for (const Plan::OutputInfo& output : forward.outputs()) bytes += output.spec.bytes();
  if (!compiled.backward) return bytes;
  bytes += compiled.backward->arena_bytes();
  for (const BackwardInput& source : compiled.sources)
    if (source.kind == BackwardInput::Kind::kHead)
      bytes += forward.outputs()[static_cast<size_t>(source.index)].spec.bytes();
  return bytes;
}

}  // namespace

int64_t GraphFunction::memory_bytes(std::span<const NDArray> inputs, std::span<const uint8_t> wants) {
  if (is_cut_ || is_cut_for_gradient_ || has_sparse(inputs)) return memory_of_parts();
  const Ref<CompiledCall> compiled = compiled_for(inputs, wants, !wants.empty());
  return compiled->unequal.empty() ? memory_of(*compiled) : cut_at(compiled->unequal)->memory_of_parts();
}

int64_t GraphFunction::memory_of_parts() {
  int64_t bytes = 0;
  for (const Ref<GraphFunction>& part : parts()) bytes += part->memory_of_parts();
  const std::lock_guard lock(mutex_);
  return compiled_.empty() ? bytes : bytes + memory_of(*compiled_.front());
}

size_t GraphFunction::num_segments() { return is_cut_ ? segments(false).num_segments() : 1; }

GraphFunction::Counts GraphFunction::counts() {
  Counts all{0, 0, 0, 0};
  for (const Ref<GraphFunction>& part : parts()) {
    const Counts more = part->counts();
    all = {all.plans + more.plans, all.linked + more.linked, all.layouts + more.layouts,
           all.rewritten + more.rewritten};
  }
  const std::lock_guard lock(mutex_);
  std::set<const Plan::Linked*> plans;
  for (const Ref<CompiledCall>& call : compiled_)
    if (call->forward) plans.insert(call->forward->linked().get());
  return {all.plans + plans.size(), all.linked + compiler_.num_linked(), all.layouts + compiler_.num_layouts(),
          all.rewritten + compiler_.num_rewritten()};
}

bool GraphFunction::is_torn() {
  const std::lock_guard lock(mutex_);
  return std::any_of(compiled_.begin(), compiled_.end(),
                     [](const Ref<CompiledCall>& call) { return call->forward && call->forward->is_torn(); });
}

void GraphFunction::forget_torn() {
  const std::lock_guard lock(mutex_);
  for (const Ref<CompiledCall>& call : compiled_)
    if (call->forward) call->forward->forget_torn();
}

// Names and specs of the first inputs, and how many more there are.
std::string GraphFunction::inputs_text(const CallSignature& signature) const {
  constexpr size_t kShown = 3;
  std::string text;
  for (size_t i = 0; i < std::min(kShown, signature.inputs.size()); ++i)
    text += (i > 0 ? ", " : "") + definition_.inputs[i]->name + " " + signature.inputs[i].str();
  if (signature.inputs.size() > kShown)
    text += ", and " + std::to_string(signature.inputs.size() - kShown) + " more inputs";
  return text;
}

std::string GraphFunction::sparse_segments_text() {
  const std::lock_guard lock(mutex_);
  std::string text;
  for (const auto& [use, graph] : segments_) {
    if (use.second.empty()) continue;
    text += "for inputs in storages (";
    for (size_t i = 0; i < use.second.size(); ++i)
      text += std::string(i > 0 ? ", " : "") + storage_type_name(use.second[i]);
    text += "):\n" + graph->text();
  }
  return text;
}

std::string GraphFunction::summary() {
  if (is_cut_) {
    const SegmentedGraph& graph = segments(false);
    std::string text = options_.name + ": " + std::to_string(graph.num_segments()) + " segments\n" + graph.text();
    for (const Ref<GraphFunction>& part : parts()) text += part->summary();
    return text;
  }
  std::string text = options_.name + ": " + std::to_string(counts().plans) + " plans\n" + sparse_segments_text();
  for (const Ref<GraphFunction>& part : parts()) text += part->summary();
  auto line = [&](const char* what, const Plan& plan) {
    text += std::string("  ") + what + ": " + std::to_string(plan.num_instructions()) + " instructions, arena " +
            std::to_string(plan.arena_bytes()) + " bytes, kept for backward " + std::to_string(plan.residual_bytes()) +
            " bytes, about " + std::to_string(plan.cost_ns() / 1000) + " us\n";
  };
  const std::lock_guard lock(mutex_);
  for (const Ref<CompiledCall>& call : compiled_) {
    if (!call->forward) continue;
    text +=
        std::string(call->signature.train ? " training" : " prediction") + ": " + inputs_text(call->signature) + "\n";
    line("forward", *call->forward);
    if (call->backward) line("backward", *call->backward);
    text += call->report.text();
  }
  return text;
}

Ref<CompiledCall> GraphFunction::most_recent() {
  const std::lock_guard lock(mutex_);
  return compiled_.empty() ? nullptr : compiled_.front();
}

std::string GraphFunction::plan_text() {
  if (is_cut_) {
    std::string text = segments(false).text();
    for (const Ref<GraphFunction>& part : parts()) text += part->plan_text();
    return text;
  }
  const Ref<CompiledCall> call = most_recent();
  if (!call) {
    std::string text = sparse_segments_text();
    for (const Ref<GraphFunction>& part : parts()) text += part->plan_text();
    return text;
  }
  if (!call->unequal.empty()) return cut_at(call->unequal)->plan_text();
  const char* kind = call->signature.train ? ", training: " : ", prediction: ";
  std::string text = options_.name + kind + inputs_text(call->signature) + "\n";
  text += "forward: " + call->forward->text();
  if (call->backward) text += "backward: " + call->backward->text();
  return text;
}

std::vector<std::string> GraphFunction::fired_rewrites() {
  std::vector<std::string> names;
  const Ref<CompiledCall> call = most_recent();
  if (!call) return names;
  for (const PassReport::Line& line : call->report.lines())
    if (line.fired > 0) names.push_back(line.name);
  return names;
}

std::string GraphFunction::graph_text() {
  if (is_cut_) {
    std::string text = segments(false).text();
    for (const Ref<GraphFunction>& part : parts()) text += part->options_.name + ":\n" + part->graph_text();
    return text;
  }
  const Ref<CompiledCall> call = most_recent();
  if (!call) {
    std::string text = sparse_segments_text();
    for (const Ref<GraphFunction>& part : parts()) text += part->options_.name + ":\n" + part->graph_text();
    return text;
  }
  if (!call->unequal.empty()) return cut_at(call->unequal)->graph_text();
  const std::lock_guard lock(mutex_);
  return compiler_.graph_text(call->signature);
}

}  // namespace hybridnet
