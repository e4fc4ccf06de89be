// Conversion of bodies of loops and branches to graphs of their own, to optimize them, and back.
#pragma once

#include "hybridnet/pass.h"

namespace hybridnet {

// Returns the specs of a body's inputs, given the specs of the node's inputs.
std::vector<TensorSpec> body_input_specs(const Node& node, size_t body, std::span<const TensorSpec> node_inputs);

// Returns the body as a graph with all specs known and random nodes numbered. Throws ShapeError if a spec stays
// unknown.
Graph body_graph(const Node& node, size_t body, std::span<const TensorSpec> inputs, bool train);

// Numbers the random nodes of a graph: each draws from its own stream, also after rewrites move it.
void number_random_nodes(Graph& graph);

// Returns the graph as a body with these outputs; its nodes are copied.
Ref<Subgraph> freeze(const Graph& graph, const std::vector<NodeEntry>& outputs);

}  // namespace hybridnet
