// Replaces loops that run once or never, and branches that constants choose, by the nodes that run.
#include <optional>

#include "graph/control/loop_view.h"
#include "hybridnet/ndarray.h"
#include "ndarray/device_work.h"
#include "passes/gradient/node_builders.h"
#include "passes/loops/commit_states.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

const OpRef kCopy{"_copy"}, kCast{"Cast"}, kExpandDims{"expand_dims"};

// False for draws, which follow the iteration that makes them, and for states and outside code, which stay in place.
bool may_leave_body(const Graph& graph, const Node& node) {
  return !is_random(node) && !is_opaque(node) && !updates_states(node, graph.train()) && !has_dynamic_body(node) &&
         node.control.empty();
}

// True if the entry depends on constants only. Looks at a few nodes: predicates are small.
bool is_constant(const NodeEntry& entry) {
  constexpr size_t kMostNodes = 32;
  std::vector<const Node*> pending{entry.node.get()};
  for (size_t i = 0; i < pending.size(); ++i) {
    if (i == kMostNodes) return false;
    const Node& node = *pending[i];
    if (node.is_variable() ? !node.constant : node.op->random || node.op->opaque || !node.subgraphs.empty())
      return false;
    for (const NodeEntry& input : node.inputs) pending.push_back(input.node.get());
  }
  return true;
}

// The value of a predicate if constants decide it; nothing if an input does.
std::optional<bool> known_truth(const Graph& graph, const Node& node, size_t body) {
  const Subgraph& predicate = *node.subgraphs[body];
  const std::vector<bool> read = read_inputs(predicate);
  for (size_t k = 0; k < read.size(); ++k)
    if (read[k] && !is_constant(node.inputs[k])) return std::nullopt;
  Graph test = graph_of_body(graph, node, body);
  for (size_t k = 0; k < read.size(); ++k) {
    if (!read[k]) continue;
    EntryMap map;
    test.replace({test.inputs()[k], 0}, test.import(graph, {node.inputs[k]}, map)[0]);
  }
  test.set_output(0, emit(test, kCast, {test.outputs()[0]}, {{"dtype", "float64"}}, nullptr));
  fold_constants(test);
  const NodeEntry& result = test.outputs()[0];
  if (!result.node->is_variable() || !result.node->constant || graph.spec(result).shape.size() != 1)
    return std::nullopt;
  const NDArray value(Ref<ArrayImpl>(static_cast<ArrayImpl*>(result.node->constant.get())));
  return *static_cast<const double*>(on_cpu(value).data()) != 0;
}

// Adds the nodes of a body, applied to these inputs, to the graph around it. Returns its outputs.
std::vector<NodeEntry> inlined(Graph& graph, const Node& node, size_t body, const std::vector<NodeEntry>& inputs) {
  const Graph inside = graph_of_body(graph, node, body);
  EntryMap map;
  for (size_t k = 0; k < inside.inputs().size(); ++k) map[{inside.inputs()[k], 0}] = inputs[k];
  return graph.import(inside, inside.outputs(), map);
}

// Replaces the node by these outputs. Copies variables: an output of the graph must not be an input of it.
Replacement instead_of(Graph& graph, const Node& node, std::vector<NodeEntry> outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!graph.is_used(node, static_cast<int>(i))) {
      outputs[i] = {};
      continue;
    }
    if (!(graph.spec(outputs[i]) == node.specs[i])) return no_change();
    if (outputs[i].node->is_variable()) outputs[i] = emit(graph, kCopy, {outputs[i]}, {}, &node);
  }
  return {std::move(outputs), {}, {}};
}

// The outputs if nothing runs: final states are the initial ones, rows are zeros or none.
Replacement without_iterations(Graph& graph, const Node& node) {
  const LoopSpec& loop = loop_of(node);
  std::vector<NodeEntry> outputs;
  for (size_t i = 0; i < node.specs.size(); ++i) {
    const bool is_carry = i >= loop.outs() && i < loop.outs() + loop.carries();
    outputs.push_back(is_carry ? node.inputs[loop.carry(i - loop.outs())] : zeros(graph, node.specs[i], &node));
  }
  return instead_of(graph, node, std::move(outputs));
}

Replacement one_iteration(Graph& graph, const Node& node) {
  const LoopSpec& loop = loop_of(node);
  const std::vector<TensorSpec> inside = [&] {
    std::vector<TensorSpec> specs;
    for (size_t k = 0; k < loop.seqs(); ++k)
      specs.push_back(slice_spec(graph.spec(node.inputs[k]), loop.scalar_slices));
    return specs;
  }();
  std::vector<NodeEntry> inputs = node.inputs;
  for (size_t k = 0; k < loop.seqs(); ++k) inputs[k] = reshaped(graph, inputs[k], inside[k].shape, &node);
  std::vector<NodeEntry> outputs = inlined(graph, node, 0, inputs);
  for (size_t i = 0; i < loop.outs(); ++i)
    if (graph.is_used(node, static_cast<int>(i))) outputs[i] = reshaped(graph, outputs[i], node.specs[i].shape, &node);
  return instead_of(graph, node, std::move(outputs));
}

}  // namespace

Replacement known_branch(Graph& graph, Node& node) {
  const BranchSpec& spec = branch_of(node);
  if (spec.dynamic || spec.then_extra > 0 || spec.else_extra > 0 || !may_leave_body(graph, node)) return no_change();
  const std::optional<bool> truth = known_truth(graph, node, 0);
  if (!truth) return no_change();
  return instead_of(graph, node, inlined(graph, node, *truth ? 1 : 2, node.inputs));
}

// Loops that cut off gradients stay: outside of the loop, they would not be cut off.
Replacement few_iterations(Graph& graph, Node& node) {
  const LoopSpec& loop = loop_of(node);
  if (control_kind(node) != ControlKind::kForeach || loop.counted || rows_of(graph, node) != 1) return no_change();
  if (loop.truncate_gradient > 0 || loop.detach_every > 0 || !may_leave_body(graph, node)) return no_change();
  return one_iteration(graph, node);
}

Replacement few_iterations_joint(Graph& graph, Node& node) {
  const LoopSpec& loop = loop_of(node);
  if (control_kind(node) == ControlKind::kForeach) {
    const bool never = !loop.counted && rows_of(graph, node) == 0 && !has_dynamic_body(node);
    return never ? without_iterations(graph, node) : few_iterations(graph, node);
  }
  if (has_dynamic_shape(node) || !may_leave_body(graph, node)) return no_change();
  const bool may_run = loop.max_iterations != 0 || loop.on_limit != "stop";
  return may_run && known_truth(graph, node, 0) != false ? no_change() : without_iterations(graph, node);
}

}  // namespace hybridnet::passes
