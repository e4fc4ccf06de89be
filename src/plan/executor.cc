// Symbol.bind: the same plans as CachedOp's, over arrays that were bound once.
#include <utility>

#include "hybridnet/plan.h"
#include "imperative/autograd_scope.h"
#include "passes/control_gradient.h"
#include "plan/graph_function.h"
#include "plan/task.h"

namespace hybridnet {
namespace {

const OpRef kAdd{"elemwise_add"}, kCopy{"_copy"}, kOnesLike{"ones_like"};

[[noreturn]] void throw_count(const char* what, size_t expected, size_t given) {
  throw ValueError(
      {.op = "bind", .input = what, .expected = std::to_string(expected) + " arrays", .given = std::to_string(given)});
}

}  // namespace

struct Executor::Impl {
  Ref<GraphFunction> function;
  std::vector<NDArray> inputs;     // in the order of list_inputs()
  std::vector<NDArray> gradients;  // parallel to inputs
  std::vector<GradReq> requests;
  std::vector<uint8_t> wants;
  bool any_wanted = false;
  std::vector<NDArray> outputs;
  GraphFunction::Pending pending;  // what backward needs; empty after a run in prediction mode
  RngKey key;                      // of the last run
  bool ran = false;
  bool unbounded = false;  // a gradient goes through a loop that nothing bounds: the graph runs node by node
  // Graphs that run node by node: what the tape knows of the last run.
  std::vector<NDArray> leaves, recorded;

  bool by_node() const { return function->dynamic() || unbounded; }

  void run_dynamic(bool train, bool keep) {
    leaves.clear();
    for (size_t i = 0; i < inputs.size(); ++i) {
      leaves.push_back(inputs[i].detached());
      if (keep && wants[i] != 0) mark_variable(leaves[i], gradients[i], requests[i]);
    }
    {
      const AutogradScope scope({.recording = keep, .training = train});
      recorded = function->call(leaves, {});
    }
    if (!keep) leaves.clear();
  }

  void backward_dynamic(const std::vector<NDArray>& heads) {
    std::vector<NDArray> roots, root_grads;
    for (size_t i = 0; i < recorded.size(); ++i) {
      if (!heads[i] || !needs_gradient(recorded[i])) continue;
      roots.push_back(recorded[i]);
      root_grads.push_back(heads[i]);
    }
    for (const NDArray& leaf : leaves) set_gradient_fresh(leaf, false);
    if (!roots.empty()) hybridnet::backward(roots, root_grads, true, true);
    for (size_t i = 0; i < leaves.size(); ++i)
      if (requests[i] == GradReq::kWrite && !gradient_is_fresh(leaves[i])) push_zeros(gradients[i]);
  }

  // Per output: does some wanted gradient read its head? What arrives at the others is not looked at.
  std::vector<uint8_t> read_heads() const {
    std::vector<uint8_t> read(outputs.size(), 0);
    if (by_node()) {
      for (size_t i = 0; i < recorded.size(); ++i) read[i] = needs_gradient(recorded[i]) ? 1 : 0;
    } else {
      for (const BackwardInput& source : pending.compiled->sources)
        if (source.kind == BackwardInput::Kind::kHead) read[static_cast<size_t>(source.index)] = 1;
    }
    return read;
  }

  // One gradient per output whose head is read; ones when none are given.
  std::vector<NDArray> heads_from(std::span<const NDArray> out_grads) const {
    const std::vector<uint8_t> read = read_heads();
    std::vector<NDArray> heads(outputs.size());
    for (size_t i = 0; i < heads.size(); ++i) {
      if (read[i] == 0) continue;
      if (out_grads.empty()) {
        if (is_floating(outputs[i].dtype()))
          heads[i] = invoke_one(kOnesLike.op(), kOnesLike.op().default_params, {&outputs[i], 1});
        continue;
      }
      if (i >= out_grads.size()) throw_count("out_grads", outputs.size(), out_grads.size());
      heads[i] = out_grads[i];
      if (heads[i] && !(heads[i].spec() == outputs[i].spec())) {
        throw ShapeError({.op = function->options().name,
                          .input = "out_grads[" + std::to_string(i) + "]",
                          .expected = outputs[i].spec().str(),
                          .given = heads[i].spec().str()});
      }
    }
    return heads;
  }

  // Null where the graph runs node by node.
  Ref<CompiledCall> compiled_for_gradients(bool train) {
    try {
      return function->compiled_for(inputs, wants, train);
    } catch (const UnboundedLoopError&) {
      unbounded = true;
      return {};
    }
  }

  // Runs the graph in prediction mode once more, now keeping what backward needs.
  void remember() {
    const Ref<CompiledCall> compiled = compiled_for_gradients(false);
    if (compiled) function->run_forward(compiled, inputs, {}, key, &pending);
  }
};

Executor::Executor(Symbol symbol, std::vector<NDArray> arguments, std::vector<NDArray> gradients,
                   std::vector<GradReq> requests, std::vector<NDArray> auxiliaries, CachedOpConfig config)
    : impl_(std::make_unique<Impl>()) {
  const std::vector<std::string> argument_names = symbol.list_arguments();
  const std::vector<std::string> auxiliary_names = symbol.list_auxiliary_states();
  if (arguments.size() != argument_names.size()) throw_count("args", argument_names.size(), arguments.size());
  if (auxiliaries.size() != auxiliary_names.size())
    throw_count("aux_states", auxiliary_names.size(), auxiliaries.size());
  if (!gradients.empty() && gradients.size() != arguments.size())
    throw_count("args_grad", arguments.size(), gradients.size());
  if (!requests.empty() && requests.size() != arguments.size())
    throw_count("grad_req", arguments.size(), requests.size());

  GraphDefinition definition;
  definition.inputs = symbol.list_inputs();
  definition.outputs = symbol.outputs;
  Impl& m = *impl_;
  size_t argument = 0, auxiliary = 0;
  for (const NodePtr& variable : definition.inputs) {
    if (auxiliary < auxiliary_names.size() && auxiliary_names[auxiliary] == variable->name) {
      m.inputs.push_back(auxiliaries[auxiliary++]);
      m.gradients.emplace_back();
      m.requests.push_back(GradReq::kNull);
    } else {
      m.inputs.push_back(arguments.at(argument));
      m.gradients.push_back(gradients.empty() ? NDArray() : gradients[argument]);
      m.requests.push_back(requests.empty() ? GradReq::kWrite : requests[argument]);
      ++argument;
    }
    if (!m.gradients.back()) m.requests.back() = GradReq::kNull;
    m.wants.push_back(m.requests.back() == GradReq::kNull ? 0 : 1);
    m.any_wanted = m.any_wanted || m.wants.back();
    if (!m.inputs.back())
      throw ValueError({.op = "bind", .input = variable->name, .expected = "an array", .given = "none"});
  }
  CompileOptions options;
  options.name = config.name.empty() ? "Executor" : config.name;
  options.query = chosen_query(config.passes);
  options.keep_arena = true;  // bound arrays: the next call looks like this one
  m.function = make_ref<GraphFunction>(std::move(definition), std::move(options));
}

Executor::~Executor() = default;

const std::vector<NDArray>& Executor::forward(bool train) {
  Impl& m = *impl_;
  const bool keep = train && m.any_wanted;
  Ref<CompiledCall> compiled;
  if (!m.by_node()) compiled = keep ? m.compiled_for_gradients(train) : m.function->compiled_for(m.inputs, {}, train);
  if (m.by_node()) {
    m.run_dynamic(train, keep);
    m.ran = true;
    m.outputs.clear();
    for (const NDArray& result : m.recorded) m.outputs.push_back(result.detached());
    return m.outputs;
  }
  // Results stay in the arrays that the caller may hold, unless their specs change.
  bool reuse = m.outputs.size() == compiled->forward->outputs().size();
  for (size_t i = 0; reuse && i < m.outputs.size(); ++i)
    reuse = m.outputs[i].spec() == compiled->forward->outputs()[i].spec;
  m.key = compiled->forward->uses_random() ? next_rng_key() : RngKey{};
  m.ran = true;
  m.pending = {};
  m.outputs = m.function->run_forward(compiled, m.inputs,
                                      reuse ? std::span<const NDArray>(m.outputs) : std::span<const NDArray>(), m.key,
                                      keep ? &m.pending : nullptr);
  return m.outputs;
}

void Executor::backward(std::span<const NDArray> out_grads) {
  Impl& m = *impl_;
  if (!m.ran) {
    throw GradientError({.op = m.function->options().name,
                         .message = "backward needs a forward run before it",
                         .fix = "call forward(is_train=True) first"});
  }
  if (!m.any_wanted) return;
  if (!m.by_node() && !m.pending.compiled) m.remember();
  if (m.by_node() && m.leaves.empty()) m.run_dynamic(false, true);
  const std::vector<NDArray> heads = m.heads_from(out_grads);
  if (m.by_node()) return m.backward_dynamic(heads);
  std::vector<NDArray> into(m.inputs.size());
  for (size_t i = 0; i < into.size(); ++i) {
    if (m.requests[i] == GradReq::kWrite) into[i] = m.gradients[i];
    if (m.requests[i] != GradReq::kNull) note_overwrite(m.gradients[i]);
  }
  const std::vector<NDArray> found = m.function->run_backward(m.pending, heads, into);
  for (size_t i = 0; i < found.size(); ++i) {
    if (m.requests[i] == GradReq::kNull) continue;
    const NDArray& target = m.gradients[i];
    if (!found[i]) {
      if (m.requests[i] == GradReq::kWrite) push_zeros(target);
    } else if (m.requests[i] == GradReq::kAdd) {
      const NDArray terms[] = {target, found[i]};
      invoke(kAdd.op(), kAdd.op().default_params, terms, {&target, 1});
    } else if (!found[i].shares_memory(target)) {
      invoke(kCopy.op(), kCopy.op().default_params, {&found[i], 1}, {&target, 1});
    }
  }
}

const std::vector<NDArray>& Executor::outputs() const { return impl_->outputs; }

int64_t Executor::memory_bytes() {
  Impl& m = *impl_;
  if (m.function->dynamic()) return 0;
  const Ref<CompiledCall> compiled = m.function->compiled_for(
      m.inputs, m.any_wanted ? std::span<const uint8_t>(m.wants) : std::span<const uint8_t>(), m.any_wanted);
  const Plan& forward = *compiled->forward;
  int64_t bytes = forward.arena_bytes() + forward.residual_bytes();
  for (const Plan::OutputInfo& output : forward.outputs()) bytes += output.spec.bytes();
  if (!compiled->backward) return bytes;
  bytes += compiled->backward->arena_bytes();
  for (const BackwardInput& source : compiled->sources)
    if (source.kind == BackwardInput::Kind::kHead)
      bytes += forward.outputs()[static_cast<size_t>(source.index)].spec.bytes();
  return bytes;
}

}  // namespace hybridnet
