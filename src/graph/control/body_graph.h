// Bodies of loops and branches as graphs of their own: made, optimized, frozen again.
#pragma once

#include "hybridnet/pass.h"

namespace hybridnet {

// Specs of a body's inputs, from those of the node's inputs.
std::vector<TensorSpec> body_input_specs(const Node& node, size_t body, std::span<const TensorSpec> node_inputs);

// The body with every spec known; random nodes are numbered. Throws ShapeError when a spec stays unknown.
Graph body_graph(const Node& node, size_t body, std::span<const TensorSpec> inputs, bool train);

// Numbers the random nodes of a graph: each draws from a stream of its own, wherever rewriting puts it.
void number_random_nodes(Graph& graph);

// The graph as a body that gives these values; its nodes are copied.
Ref<Subgraph> freeze(const Graph& graph, const std::vector<NodeEntry>& outputs);

}  // namespace hybridnet
