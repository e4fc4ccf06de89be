#include "graph/control/unequal_branches.h"

#include <algorithm>
#include <unordered_map>

#include "graph/control/body_graph.h"
#include "graph/control/control_flow.h"

namespace hybridnet {
namespace {

bool has_branch(const Node& node) {
  if (control_kind(node) == ControlKind::kCond) return true;
  return std::any_of(node.subgraphs.begin(), node.subgraphs.end(), [](const Ref<Subgraph>& body) {
    const std::vector<Node*> nodes = topological_order(body->outputs);
    return std::any_of(nodes.begin(), nodes.end(), [](const Node* inner) { return has_branch(*inner); });
  });
}

std::vector<SpecMap> infer_bodies(const Node& node, std::span<const TensorSpec> in, bool train) {
  std::vector<SpecMap> found(node.subgraphs.size());
  for (size_t body = 0; body < found.size(); ++body) {
    const Subgraph& graph = *node.subgraphs[body];
    const std::vector<TensorSpec> of_inputs = body_input_specs(node, body, in);
    for (size_t i = 0; i < of_inputs.size(); ++i) found[body][{graph.inputs[i], 0}] = of_inputs[i];
    infer_specs(graph.outputs, found[body], train);
  }
  return found;
}

bool differ(const Node& node, const SpecMap& then_specs, const SpecMap& else_specs) {
  for (size_t i = 0; i < branch_of(node).outs(); ++i) {
    const TensorSpec &one = then_specs.at(node.subgraphs[1]->outputs[i]),
                     &other = else_specs.at(node.subgraphs[2]->outputs[i]);
    if (one.known() && other.known() && !(one == other)) return true;
  }
  return false;
}

void find_unequal(const std::vector<NodeEntry>& outputs, const SpecMap& specs, bool train,
                  std::set<const Node*>& found) {
  for (const Node* node : topological_order(outputs)) {
    if (!has_branch(*node)) continue;
    std::vector<TensorSpec> in;
    for (const NodeEntry& input : node->inputs) in.push_back(specs.at(input));
    const std::vector<SpecMap> inside = infer_bodies(*node, in, train);
    if (control_kind(*node) == ControlKind::kCond && !branch_of(*node).dynamic && differ(*node, inside[1], inside[2]))
      found.insert(node);
    for (size_t body = 0; body < inside.size(); ++body)
      find_unequal(node->subgraphs[body]->outputs, inside[body], train, found);
  }
}

// Copies the nodes that change and their consumers; other nodes are shared with the old graph.
class Marking {
 public:
  explicit Marking(const std::set<const Node*>& branches) : branches_(branches) {}

  std::vector<NodeEntry> run(const std::vector<NodeEntry>& outputs) const {
    std::unordered_map<const Node*, NodePtr> nodes;
    const auto now = [&](const NodePtr& node) { return nodes.at(node.get()); };
    for (Node* node : topological_order(outputs)) {
      std::vector<NodeEntry> inputs;
      std::vector<NodePtr> control;
      for (const NodeEntry& input : node->inputs) inputs.push_back({now(input.node), input.index});
      for (const NodePtr& before : node->control) control.push_back(now(before));
      nodes[node] = changed(*node, std::move(inputs), std::move(control));
    }
    std::vector<NodeEntry> results;
    for (const NodeEntry& output : outputs) results.push_back({now(output.node), output.index});
    return results;
  }

 private:
  NodePtr changed(Node& node, std::vector<NodeEntry> inputs, std::vector<NodePtr> control) const {
    std::vector<Ref<Subgraph>> bodies;
    for (const Ref<Subgraph>& body : node.subgraphs) bodies.push_back(changed(body));
    const bool is_chosen = branches_.count(&node) != 0;
    if (!is_chosen && inputs == node.inputs && control == node.control && bodies == node.subgraphs)
      return NodePtr(&node);
    const NodePtr copy = copy_of(node, std::move(inputs));
    copy->control = std::move(control);
    copy->subgraphs = std::move(bodies);
    if (is_chosen) {
      BranchSpec branch = branch_of(node);
      branch.dynamic = true;
      copy->params = boxed(std::move(branch));
    }
    return copy;
  }

  Ref<Subgraph> changed(const Ref<Subgraph>& body) const {
    std::vector<NodeEntry> outputs = run(body->outputs);
    if (outputs == body->outputs) return body;
    auto copy = make_ref<Subgraph>();
    copy->inputs = body->inputs;
    copy->outputs = std::move(outputs);
    return copy;
  }

  const std::set<const Node*>& branches_;
};

}  // namespace

std::set<const Node*> unequal_branches(const std::vector<NodeEntry>& outputs, const SpecMap& specs, bool train) {
  std::set<const Node*> found;
  find_unequal(outputs, specs, train, found);
  return found;
}

std::vector<NodeEntry> with_dynamic_branches(const std::vector<NodeEntry>& outputs,
                                             const std::set<const Node*>& branches) {
  return Marking(branches).run(outputs);
}

}  // namespace hybridnet
