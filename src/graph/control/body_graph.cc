#include "graph/control/body_graph.h"

#include <algorithm>

#include "graph/control/control_flow.h"

namespace hybridnet {
namespace {

const OpRef kCopy{"_copy"};

void require_known(const Node& node, const std::vector<NodeEntry>& outputs, const SpecMap& specs) {
  for (Node* inner : topological_order(outputs)) {
    for (int i = 0; i < inner->num_outputs(); ++i) {
      const TensorSpec& spec = specs.at({NodePtr(inner), static_cast<uint32_t>(i)});
      if (spec.known()) continue;
      throw ShapeError({.op = inner->op ? inner->op->name : node.op->name,
                        .node = node.name + "." + inner->name,
                        .block = inner->block,
                        .message = "the spec of a value in the body does not follow from the inputs: " + spec.str(),
                        .fix = "give its shape; ops whose shape depends on values cannot stand in a compiled loop",
                        .where = inner->where});
    }
  }
}

}  // namespace

std::vector<TensorSpec> body_input_specs(const Node& node, size_t body, std::span<const TensorSpec> node_inputs) {
  std::vector<TensorSpec> specs(node_inputs.begin(),
                                node_inputs.begin() + static_cast<long>(node.subgraphs[body]->inputs.size()));
  if (control_kind(node) == ControlKind::kForeach) {
    const LoopSpec& loop = loop_of(node);
    for (size_t k = 0; k < loop.seqs(); ++k) specs[k] = slice_spec(specs[k], loop.scalar_slices);
  }
  return specs;
}

void number_random_nodes(Graph& graph) {
  uint64_t next = 0;
  bool is_complete = true;
  for (Node* node : graph.order()) {
    const std::optional<uint64_t> stream = random_stream(*node);
    if (stream && *stream != kStreamOfLoopAround) next = std::max(next, *stream + 1);
    is_complete = is_complete && (stream || !is_random(*node));
  }
  if (is_complete) return;
  for (Node* node : graph.schedule()) {
    if (is_random(*node) && !random_stream(*node)) set_random_stream(*node, next++);
  }
}

Graph body_graph(const Node& node, size_t body, std::span<const TensorSpec> inputs, bool train) {
  const Subgraph& subgraph = *node.subgraphs[body];
  SpecMap specs;
  for (size_t i = 0; i < subgraph.inputs.size(); ++i) specs[{subgraph.inputs[i], 0}] = inputs[i];
  if (!infer_specs(subgraph.outputs, specs, train)) require_known(node, subgraph.outputs, specs);
  Graph graph(train);
  EntryMap map;
  for (size_t i = 0; i < subgraph.inputs.size(); ++i) {
    const NodePtr& variable = subgraph.inputs[i];
    map[{variable, 0}] = {graph.add_input(variable->name, inputs[i]), 0};
  }
  for (const NodeEntry& output : graph.import(subgraph.outputs, &specs, map)) graph.add_output(output);
  number_random_nodes(graph);
  return graph;
}

Ref<Subgraph> freeze(const Graph& graph, const std::vector<NodeEntry>& outputs) {
  Graph copy(graph.train());
  EntryMap map;
  auto body = make_ref<Subgraph>();
  for (const NodePtr& input : graph.inputs()) {
    const NodePtr variable = copy.add_input(input->name, input->specs[0]);
    map[{input, 0}] = {variable, 0};
    body->inputs.push_back(variable);
  }
  for (const NodeEntry& output : copy.import(graph, outputs, map)) {
    if (!output.node->is_variable()) {
      body->outputs.push_back(output);
      continue;
    }
    const NodePtr head = make_node(kCopy.op(), output.node->name + "_copy", kCopy.op().default_params, {output});
    head->specs = output.node->specs;
    body->outputs.push_back({head, 0});
  }
  return body;
}

}  // namespace hybridnet
