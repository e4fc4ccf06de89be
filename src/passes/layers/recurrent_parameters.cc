// Weights and biases of recurrent layers, which RNN takes as one vector, are joined once in prediction, not in each
// call.
#include <algorithm>

#include "passes/preparation.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

// True for a parameter, and for a parameter as a vector.
bool may_be_prepared(const Graph& graph, const NodeEntry& entry) {
  if (is_parameter(graph, entry)) return true;
  const Node& node = *entry.node;
  return !node.is_variable() && node.op->is_view && is_parameter(graph, node.inputs[0]);
}

NodeEntry prepared(Graph& graph, const Node& node, std::vector<NodeEntry> inputs) {
  const NodePtr made = graph.add(*node.op, node.params, std::move(inputs), &node);
  mark_as_preparation(*made);
  return {made, 0};
}

}  // namespace

Replacement rnn_parameters(Graph& graph, Node& node) {
  const auto is_known = [&](const NodeEntry& part) { return may_be_prepared(graph, part); };
  if (graph.train() || is_preparation(node) || !std::all_of(node.inputs.begin(), node.inputs.end(), is_known))
    return no_change();
  std::vector<NodeEntry> parts;
  for (const NodeEntry& part : node.inputs)
    parts.push_back(is_parameter(graph, part) ? part : prepared(graph, *part.node, part.node->inputs));
  return replace_with(prepared(graph, node, std::move(parts)));
}

}  // namespace hybridnet::passes
