#include "passes/branches/cond_parts.h"

#include <algorithm>

#include "graph/control/body_graph.h"
#include "passes/loops/commit_states.h"
#include "passes/preparation.h"

namespace hybridnet::passes {
Graph branch_graph(const Graph& graph, const Node& node, size_t body) {
  std::vector<TensorSpec> specs;
  for (const NodeEntry& input : node.inputs) specs.push_back(graph.spec(input));
  return body_graph(node, body, body_input_specs(node, body, specs), graph.train());
}

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

NodePtr add_cond(Graph& graph, const Node& node, CondParams p, std::array<CondBranch, 2> branches) {
  std::vector<NodeEntry> inputs;
  auto input_number = [&](const NodeEntry& entry) -> int64_t {
    const auto at = std::find(inputs.begin(), inputs.end(), entry);
    if (at != inputs.end()) return at - inputs.begin();
    inputs.push_back(entry);
    return static_cast<int64_t>(inputs.size()) - 1;
  };
  p.cond_input_locs.clear();
  for (int source : body_sources(node, 0))
    p.cond_input_locs.push_back(input_number(node.inputs[static_cast<size_t>(source)]));
  std::vector<Ref<Subgraph>> bodies{node.subgraphs[0]};
  for (size_t b = 0; b < 2; ++b) {
    OptionalInts& locs = b == 0 ? p.then_input_locs : p.else_input_locs;
    locs.clear();
    for (const NodeEntry& entry : branches[b].outside) locs.push_back(input_number(entry));
    bodies.push_back(std::move(branches[b].body));
  }
  p.num_args = static_cast<int32_t>(inputs.size());
  const NodePtr made =
      graph.add(*node.op, ParamSchema<CondParams>::box(std::move(p)), std::move(inputs), &node, std::move(bodies));
  made->attrs = node.attrs;
  return made;
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
