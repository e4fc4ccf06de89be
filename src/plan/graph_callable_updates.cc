// Updates of inputs that cannot be part of a plan, and graph functions without them.
#include <algorithm>
#include <unordered_map>

#include "device/memory.h"
#include "engine/error_free_writes.h"
#include "graph/control/input_use.h"
#include "imperative/autograd_scope.h"
#include "ndarray/overlap.h"
#include "plan/graph_callable.h"

namespace hybridnet {
namespace {

const OpRef kCopy{"_copy"};

}  // namespace

std::vector<NDArray> GraphCallable::apart_from_updated(std::span<const NDArray> inputs) const {
  std::vector<NDArray> apart;
  for (const Graph::Writeback& update : definition_.updates) {
    const auto target = static_cast<size_t>(update.input);
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (i == target || !overlap(inputs[i], inputs[target])) continue;
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

Ref<GraphCallable> GraphCallable::with_updates_as_outputs() {
  const std::lock_guard lock(mutex_);
  if (!with_updates_as_outputs_) {
    GraphDefinition definition = definition_;
    definition.outputs = definition.roots();
    definition.updates.clear();
    definition.donated.clear();
    definition.borrowed.clear();
    definition.checked = false;
    with_updates_as_outputs_ = make_ref<GraphCallable>(std::move(definition), options_);
  }
  return with_updates_as_outputs_;
}

std::vector<NDArray> GraphCallable::call_and_commit(std::span<const NDArray> inputs, std::span<const NDArray> out,
                                                    std::optional<RngKey> key) {
  const Ref<GraphCallable> function = with_updates_as_outputs();
  // Gradients, which may be requested after the commit, refer to the copies. States that operators write are copied
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
  const std::vector<uint8_t> written = function->written_inputs(autograd_state().training);
  for (const Graph::Writeback& update : definition_.updates)
    if (written[static_cast<size_t>(update.input)] != 0)
      throw_written_twice(definition_.inputs[static_cast<size_t>(update.input)]->name);
  if (definition_.atomic) {
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

// Commits all values in one task, which runs only if the tasks that compute the values have succeeded.
void GraphCallable::commit(std::span<const NDArray> inputs, std::vector<std::pair<size_t, NDArray>> values) const {
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
  const ErrorFreeWrites stay_sound(sound);
  run_task(task_name_, sources, targets, bytes / 8, [targets, sources, names](TaskContext&) {
    for (size_t i = 0; i < targets.size(); ++i) {
      if (targets[i].spec() == sources[i].spec()) continue;
      throw ShapeError({.input = names[i],
                        .expected = "an update of " + targets[i].spec().str() + ", as the variable holds",
                        .given = sources[i].spec().str()});
    }
    for (size_t i = 0; i < targets.size(); ++i)
      device::copy_memory(targets[i].data(), sources[i].data(), targets[i].bytes());
  });
}

Ref<GraphCallable> GraphCallable::without_writebacks() {
  const std::lock_guard lock(mutex_);
  if (!without_writebacks_) {
    GraphDefinition definition = definition_;
    definition.commits_writebacks = false;
    definition.updates.clear();
    without_writebacks_ = make_ref<GraphCallable>(std::move(definition), options_);
    without_writebacks_->is_cut_for_gradient_ = is_cut_for_gradient_.load();
  }
  return without_writebacks_;
}

namespace {

// Per input of the graph: 1 if use(node, i) is true for a node that has it as input i.
template <typename Use>
std::vector<uint8_t> inputs_with(const GraphDefinition& definition, const Use& use) {
  std::vector<uint8_t> found(definition.inputs.size());
  std::unordered_map<const Node*, size_t> number;
  for (size_t i = 0; i < definition.inputs.size(); ++i) number[definition.inputs[i].get()] = i;
  for (const Node* node : topological_order(definition.outputs)) {
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      const auto it = number.find(node->inputs[i].node.get());
      if (it != number.end() && use(*node, i)) found[it->second] = 1;
    }
  }
  return found;
}

}  // namespace

std::vector<uint8_t> GraphCallable::read_inputs(bool train) const {
  return inputs_with(definition_, [train](const Node& node, size_t i) { return reads_input(node, i, train); });
}

std::vector<uint8_t> GraphCallable::written_inputs(bool train) const {
  std::vector<uint8_t> written(definition_.inputs.size());
  if (definition_.commits_writebacks)
    written = inputs_with(definition_, [train](const Node& node, size_t i) { return writes_input(node, i, train); });
  for (const Graph::Writeback& update : definition_.updates) written[static_cast<size_t>(update.input)] = 1;
  return written;
}

}  // namespace hybridnet
