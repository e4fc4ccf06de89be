#include "plan/graph_function.h"

#include <algorithm>

#include "engine/profile.h"
#include "hybridnet/env.h"
#include "imperative/autograd_scope.h"
#include "passes/control_gradient.h"
#include "plan/task.h"
#include "plan/value_comparison.h"

namespace hybridnet {
namespace {

const OpRef kCopy{"_copy"}, kZerosLike{"zeros_like"};

// A recorded call of a graph function: one step on the tape.
class RecordedCall final : public RecordedFunction {
 public:
  RecordedCall(Ref<GraphFunction> function, std::span<const NDArray> inputs)
      : function_(std::move(function)), inputs_(inputs.begin(), inputs.end()) {}
  GraphFunction::Pending pending;

  std::string name() const override { return function_->options().name; }
  bool returns_fresh_arrays() const override { return true; }
  std::vector<Value> as_graph(std::span<const Value> inputs) const override {
    return function_->definition().applied_to(inputs);
  }
  std::vector<NDArray> backward(std::span<const NDArray> out_grads, bool create_graph) override {
    return create_graph ? function_->run_differentiable_backward(pending, inputs_, out_grads)
                        : function_->run_backward(pending, out_grads);
  }
  std::vector<NDArray> backward_into(std::span<const NDArray> out_grads, std::span<const NDArray> into) override {
    return function_->run_backward(pending, out_grads, into);
  }
  void free_residuals() override {
    inputs_.clear();
    pending.sources.clear();
    pending.residuals = NDArray();
    pending.kept = nullptr;
  }

 private:
  Ref<GraphFunction> function_;
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

bool find_wanted(std::span<const NDArray> inputs, ArrayFlags& wants) {
  bool any = false;
  for (size_t i = 0; i < inputs.size(); ++i) any |= (wants.data()[i] = needs_gradient(inputs[i]) ? 1 : 0) != 0;
  return any;
}

// May a plan write straight into `target`, while it reads `inputs`?
bool may_write(const NDArray& target, const TensorSpec& spec, std::span<const NDArray> inputs,
               const std::vector<NDArray>& others) {
  auto shared = [&](const NDArray& other) { return other && other.shares_memory(target); };
  return target.spec() == spec && std::none_of(inputs.begin(), inputs.end(), shared) &&
         std::none_of(others.begin(), others.end(), shared);
}

void copy_array(const NDArray& from, const NDArray& to) {
  invoke(kCopy.op(), kCopy.op().default_params, {&from, 1}, {&to, 1});
}

}  // namespace

// Gradients for one signature, themselves callable and differentiable.
struct GraphFunction::GradientFunction {
  GradientDefinition definition;
  Ref<GraphFunction> function;
};

GraphFunction::GraphFunction(GraphDefinition definition, CompileOptions options)
    : definition_(std::move(definition)),
      options_(std::move(options)),
      node_by_node_(std::make_unique<NodeByNode>(definition_, options_)),
      dynamic_(options_.by_node),
      compiler_(definition_, options_) {
  if (options_.name.empty()) options_.name = "CachedOp";
  if (!options_.arenas) options_.arenas = make_ref<ArenaPool>();
  task_name_ = intern_file(options_.name);
  for (const Node* node : topological_order(definition_.outputs)) {
    dynamic_ = dynamic_ || NodeByNode::is_needed_for(*node);
  }
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
  if (dynamic_) return run_by_node(inputs, out);
  ArrayFlags wants(inputs.size());
  const bool recorded = autograd_state().recording && find_wanted(inputs, wants);
  if (recorded && recorded_by_node_) return run_by_node(inputs, out);
  Ref<CompiledCall> compiled;
  try {
    compiled = compiled_for(inputs, recorded ? wants.span() : std::span<const uint8_t>(), autograd_state().training);
  } catch (const UnboundedLoopError&) {
    recorded_by_node_ = true;
    return run_by_node(inputs, out);
  }
  const RngKey call_key = key ? *key : compiled->forward->uses_random() ? next_rng_key() : RngKey{};
  if (!recorded) return run_forward(compiled, inputs, out, call_key, nullptr);
  auto function = make_ref<RecordedCall>(Ref<GraphFunction>(this), inputs);
  std::vector<NDArray> results = run_forward(compiled, inputs, out, call_key, &function->pending);
  record(Ref<RecordedFunction>(function.get()), inputs, results);
  return results;
}

std::vector<NDArray> GraphFunction::run_by_node(std::span<const NDArray> inputs, std::span<const NDArray> out) {
  std::vector<NDArray> results = node_by_node_->run(inputs);
  for (size_t i = 0; i < out.size(); ++i) copy_array(results[i], out[i]);
  return out.empty() ? results : std::vector<NDArray>(out.begin(), out.end());
}

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
  CallSignature signature;
  for (const NDArray& input : inputs) signature.inputs.push_back(input.spec());
  signature.wants.assign(wants.begin(), wants.end());
  signature.train = train;
  try {
    const profile::Scope profiled(task_name_, "compile");
    ValueComparison comparison(definition_.inputs, inputs);
    if (options_.query.debug)
      for (const NDArray& input : inputs) input.wait_to_read();
    const PipelineScope scope({.query = options_.query, .observer = options_.query.debug ? &comparison : nullptr});
    compiled_.push_front(compiler_.compile(signature));
  } catch (Error& error) {
    error.add_context({.block = options_.name});
    throw;
  }
  held_bytes_ += compiled_.front()->held_bytes();
  forget_oldest_plans();
  return compiled_.front();
}

// Called with mutex_ held. Calls that run keep their plans alive.
void GraphFunction::forget_oldest_plans() {
  const Environment& env = environment();
  const auto too_many = [&] {
    return compiled_.size() > static_cast<size_t>(env.plan_limit) ||
           (env.plan_limit_mb >= 0 && held_bytes_ > env.plan_limit_mb << 20);
  };
  while (compiled_.size() > 1 && too_many()) {
    held_bytes_ -= compiled_.back()->held_bytes();
    compiled_.pop_back();
  }
}

std::vector<NDArray> GraphFunction::run_forward(const Ref<CompiledCall>& compiled, std::span<const NDArray> inputs,
                                                std::span<const NDArray> out, RngKey key, Pending* pending) {
  const Plan& plan = *compiled->forward;
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
  for (size_t i = 0; i < fresh.size(); ++i) {
    if (!fresh[i]) fresh[i] = NDArray::deferred(plan.fresh_outputs()[i], device);
  }
  NDArray residuals;
  if (plan.residual_bytes() > 0) residuals = NDArray::deferred({Shape{plan.residual_bytes()}, DType::kUInt8}, device);
  for (const int input : plan.written_inputs()) note_overwrite(inputs[static_cast<size_t>(input)]);
  std::shared_ptr<KeptObjects> kept;
  if (plan.is_opaque()) kept = std::make_shared<KeptObjects>();
  push_plan(compiled->forward, {inputs, fresh, residuals, kept.get()}, key, task_name_);

  std::vector<NDArray> results;
  results.reserve(plan.outputs().size());
  std::vector<bool> given(fresh.size());
  for (const Plan::OutputInfo& info : plan.outputs()) {
    const NDArray& array = fresh[static_cast<size_t>(info.fresh)];
    const bool first = !given[static_cast<size_t>(info.fresh)];
    given[static_cast<size_t>(info.fresh)] = true;
    results.push_back(first && array.spec() == info.spec ? array : array.reshaped(info.spec.shape));
  }
  if (pending) {
    pending->compiled = compiled;
    pending->key = key;
    pending->residuals = residuals;
    pending->kept = std::move(kept);
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
      pending->sources.push_back({array, array ? overwrites_of(array) : 0});
    }
  }
  if (out.empty()) return results;
  for (size_t i = 0; i < out.size(); ++i) {
    if (!results[i].shares_memory(out[i])) copy_array(results[i], out[i]);
  }
  return {out.begin(), out.end()};
}

std::vector<NDArray> GraphFunction::run_backward(const Pending& pending, std::span<const NDArray> heads,
                                                 std::span<const NDArray> into) {
  const CompiledCall& compiled = *pending.compiled;
  std::vector<NDArray> gradients(compiled.gradient_of_input.size());
  if (!compiled.backward) return gradients;
  const Plan& plan = *compiled.backward;
  std::vector<NDArray> inputs;
  inputs.reserve(compiled.sources.size());
  for (size_t i = 0; i < compiled.sources.size(); ++i) {
    const BackwardInput& source = compiled.sources[i];
    const Pending::Saved& saved = pending.sources[i];
    if (source.kind == BackwardInput::Kind::kHead) {
      const TensorSpec& spec = compiled.forward->outputs()[static_cast<size_t>(source.index)].spec;
      NDArray head = heads[static_cast<size_t>(source.index)];
      if (!head) {
        head = NDArray::deferred(spec);
        push_zeros(head);
      }
      inputs.push_back(head);
      continue;
    }
    if (saved.array) {
      if (overwrites_of(saved.array) != saved.overwrites) throw_overwritten(source, saved.array);
      inputs.push_back(saved.array);
      continue;
    }
    const Plan::ResidualPlace& place = compiled.forward->residuals()[static_cast<size_t>(source.index)];
    if (!pending.residuals) {  // all that was kept has no elements
      inputs.push_back(NDArray::empty(Shape{0}, DType::kUInt8));
      continue;
    }
    inputs.push_back(pending.residuals.sliced(place.offset, pending.residuals.size()));
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
  push_plan(compiled.backward, {inputs, fresh, NDArray(), pending.kept.get()}, pending.key, task_name_);
  for (size_t i = 0; i < gradients.size(); ++i) {
    const int output = compiled.gradient_of_input[i];
    if (output < 0) continue;
    const Plan::OutputInfo& info = plan.outputs()[static_cast<size_t>(output)];
    const NDArray& array = fresh[static_cast<size_t>(info.fresh)];
    gradients[i] = array.spec() == info.spec ? array : array.reshaped(info.spec.shape);
  }
  return gradients;
}

void GraphFunction::throw_overwritten(const BackwardInput& source, const NDArray& array) const {
  const Chunk& chunk = *array.impl()->chunk;
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

std::vector<NDArray> GraphFunction::run_differentiable_backward(const Pending& pending, std::span<const NDArray> inputs,
                                                                std::span<const NDArray> heads) {
  const std::shared_ptr<GradientFunction> gradient = gradient_function(pending.compiled->signature);
  std::vector<NDArray> all(inputs.begin(), inputs.end());
  for (const int output : gradient->definition.heads) {
    NDArray head = heads[static_cast<size_t>(output)];
    if (!head) {
      const NDArray like = NDArray::empty(pending.compiled->forward->outputs()[static_cast<size_t>(output)].spec);
      head = invoke_one(kZerosLike.op(), kZerosLike.op().default_params, {&like, 1});
    }
    all.push_back(head);
  }
  std::vector<NDArray> gradients(inputs.size());
  if (gradient->definition.of_inputs.empty()) return gradients;
  std::vector<NDArray> results;
  {
    // In the mode of the forward run, which is repeated here.
    const AutogradState state{.recording = autograd_state().recording, .training = pending.compiled->signature.train};
    const AutogradScope scope(state);
    results = gradient->function->call(all, {}, pending.key);
  }
  for (size_t i = 0; i < results.size(); ++i) {
    gradients[static_cast<size_t>(gradient->definition.of_inputs[i])] = results[i];
  }
  return gradients;
}

GraphFunction::Counts GraphFunction::counts() {
  const std::lock_guard lock(mutex_);
  return {compiled_.size(), compiler_.num_linked(), compiler_.num_rewritten()};
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

std::string GraphFunction::summary() {
  const std::lock_guard lock(mutex_);
  std::string text = options_.name + ": " + std::to_string(compiled_.size()) + " plans\n";
  auto line = [&](const char* what, const Plan& plan) {
    text += std::string("  ") + what + ": " + std::to_string(plan.num_instructions()) + " instructions, arena " +
            std::to_string(plan.arena_bytes()) + " bytes, kept for backward " + std::to_string(plan.residual_bytes()) +
            " bytes, about " + std::to_string(plan.cost_ns() / 1000) + " us\n";
  };
  for (const Ref<CompiledCall>& call : compiled_) {
    text +=
        std::string(call->signature.train ? " training" : " prediction") + ": " + inputs_text(call->signature) + "\n";
    line("forward", *call->forward);
    if (call->backward) line("backward", *call->backward);
    text += call->report.text();
  }
  return text;
}

std::string GraphFunction::plan_text() {
  const std::lock_guard lock(mutex_);
  if (compiled_.empty()) return {};
  const CompiledCall& call = *compiled_.front();
  const char* kind = call.signature.train ? ", training: " : ", prediction: ";
  std::string text = options_.name + kind + inputs_text(call.signature) + "\n";
  text += "forward: " + call.forward->text();
  if (call.backward) text += "backward: " + call.backward->text();
  return text;
}

std::vector<std::string> GraphFunction::fired_rewrites() {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  if (compiled_.empty()) return names;
  for (const PassReport::Line& line : compiled_.front()->report.lines())
    if (line.fired > 0) names.push_back(line.name);
  return names;
}

std::string GraphFunction::graph_text() {
  const std::lock_guard lock(mutex_);
  return compiled_.empty() ? std::string() : compiled_.front()->graph_text;
}

}  // namespace hybridnet
