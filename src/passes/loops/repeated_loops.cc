#include "passes/loops/repeated_loops.h"

#include <algorithm>
#include <unordered_map>

#include "graph/control/control_flow.h"

namespace hybridnet {
namespace {

bool reports_limit(const Node& node) {
  if (control_kind(node) == ControlKind::kWhileLoop && loop_of(node).on_limit != "stop") return true;
  return std::any_of(node.subgraphs.begin(), node.subgraphs.end(), [](const Ref<Subgraph>& body) {
    const std::vector<Node*> nodes = topological_order(body->outputs);
    return std::any_of(nodes.begin(), nodes.end(), [](const Node* inner) { return reports_limit(*inner); });
  });
}

void silence(Node& node);

// Bodies are shared between nodes, so they are copied, not changed.
Ref<Subgraph> silent_copy(const Subgraph& body) {
  auto copy = make_ref<Subgraph>();
  copy->inputs = body.inputs;
  std::unordered_map<const Node*, NodePtr> made;
  auto twin_of = [&](const NodePtr& node) { return node->is_variable() ? node : made.at(node.get()); };
  for (Node* inner : topological_order(body.outputs)) {
    if (inner->is_variable()) continue;
    std::vector<NodeEntry> inputs;
    for (const NodeEntry& input : inner->inputs) inputs.push_back({twin_of(input.node), input.index});
    const NodePtr twin = make_node(*inner->op, inner->name, inner->params, std::move(inputs));
    for (const NodePtr& before : inner->control) twin->control.push_back(twin_of(before));
    twin->attrs = inner->attrs;
    twin->subgraphs = inner->subgraphs;
    twin->where = inner->where;
    twin->block = inner->block;
    twin->specs = inner->specs;
    silence(*twin);
    made[inner] = twin;
  }
  for (const NodeEntry& output : body.outputs) copy->outputs.push_back({twin_of(output.node), output.index});
  return copy;
}

void silence(Node& node) {
  if (!reports_limit(node)) return;
  if (control_kind(node) == ControlKind::kWhileLoop) {
    LoopSpec loop = loop_of(node);
    loop.on_limit = "stop";
    node.params = boxed(std::move(loop));
  }
  for (Ref<Subgraph>& body : node.subgraphs) body = silent_copy(*body);
}

}  // namespace

void silence_limits(Graph& graph) {
  for (Node* node : graph.order()) silence(*node);
}

}  // namespace hybridnet
