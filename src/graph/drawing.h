// Graphs as drawings.
#pragma once

#include <string>

#include "hybridnet/mutable_graph.h"

namespace hybridnet {

// The graph in the language of Graphviz' program dot: a box per loop, branch and region, an edge per value read.
std::string write_dot(const Graph& graph);

}  // namespace hybridnet
