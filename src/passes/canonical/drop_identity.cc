// Removes nodes that change nothing: each reader reads the node's input instead.
#include "passes/borders.h"
#include "passes/rules.h"

namespace hybridnet::passes {

Replacement drop_identity_joint(Graph& graph, Node& node) {
  if (!node.op->is_identity(node.params->data(), graph.train())) return no_change();
  if (separates_borders(graph, node, node.inputs[0]) || !(node.specs[0] == graph.spec(node.inputs[0])))
    return no_change();
  for (int i = 1; i < static_cast<int>(node.specs.size()); ++i) {
    if (graph.is_used(node, i)) return no_change();
  }
  Replacement result = replace_with(node.inputs[0]);
  result.outputs.resize(node.specs.size());
  return result;
}

// Before differentiation, nodes that stop gradients must stay.
Replacement drop_identity(Graph& graph, Node& node) {
  return node.op->stops_gradient ? no_change() : drop_identity_joint(graph, node);
}

// Drops views, casts, transposes and slices whose output has the spec of their input: they move no element.
Replacement drop_trivial_view(Graph& graph, Node& node) {
  if (node.specs.size() != 1 || !(node.specs[0] == graph.spec(node.inputs[0]))) return no_change();
  if (separates_borders(graph, node, node.inputs[0])) return no_change();
  return replace_with(node.inputs[0]);
}

}  // namespace hybridnet::passes
