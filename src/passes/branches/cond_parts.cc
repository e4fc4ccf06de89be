#include "passes/branches/cond_parts.h"

#include <algorithm>

#include "graph/control/control_flow.h"
#include "passes/loops/commit_states.h"
#include "passes/preparation.h"

namespace hybridnet::passes {

bool share_inputs(Graph& body, const std::vector<NodeEntry>& outside) {
  bool changed = false;
  for (size_t k = 0; k < outside.size(); ++k) {
    const auto first = static_cast<size_t>(std::find(outside.begin(), outside.end(), outside[k]) - outside.begin());
    if (first == k || body.clients({body.inputs()[k], 0}).empty()) continue;
    body.replace({body.inputs()[k], 0}, {body.inputs()[first], 0});
    changed = true;
  }
  return changed;
}

bool may_cross_branch_border(const Graph& graph, const Node& node) {
  if (node.is_variable() || updates_states(node, graph.train()) || is_random(node) || is_preparation(node) ||
      has_dynamic_shape(node) || !node.control.empty())
    return false;
  auto plain = [&graph](const NodeEntry& entry) { return graph.format(entry) == Format::kPlain; };
  for (uint32_t i = 0; i < node.specs.size(); ++i)
    if (!plain({NodePtr(const_cast<Node*>(&node)), i})) return false;
  return std::all_of(node.inputs.begin(), node.inputs.end(), plain);
}

}  // namespace hybridnet::passes
