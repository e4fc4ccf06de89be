// Values that are asked for their shape only are not computed. (The shape as a constant would tie the graph to its
// sizes: graphs serve new sizes without being rewritten.)
#include <algorithm>

#include "passes/rules.h"

namespace hybridnet::passes {

Replacement shape_of_source(Graph& graph, Node& node) {
  NodeEntry giver = node.inputs[0];
  while (!giver.node->is_variable() && giver.node->op->pointwise) {
    const std::vector<NodeEntry>& inputs = giver.node->inputs;
    const auto same = std::find_if(inputs.begin(), inputs.end(), [&](const NodeEntry& input) {
      return graph.spec(input).shape == graph.spec(giver).shape;
    });
    if (same == inputs.end()) break;
    giver = *same;
  }
  if (giver == node.inputs[0]) return no_change();
  return replace_with({graph.add(*node.op, node.params, {giver}, &node), 0});
}

}  // namespace hybridnet::passes
