// Drawings of graphs.
#pragma once

#include <string>

#include "hybridnet/mutable_graph.h"

namespace hybridnet {

// Returns the graph in Graphviz' DOT language: a box per loop, branch and region, an edge per value read.
std::string write_dot(const Graph& graph);

}  // namespace hybridnet
