// Checks at the borders of a graph, between its values and its caller.
#pragma once

#include <algorithm>
#include <vector>

#include "hybridnet/pass.h"

namespace hybridnet::passes {

// True if the node computes an output of the graph, and `now` is an input or constant. Readers of the node then cannot
// read `now` instead, because an output must not be an input.
inline bool separates_borders(const Graph& graph, const Node& node, const NodeEntry& now) {
  const std::vector<Client>& readers = graph.clients(node, 0);
  return now.node->is_variable() &&
         std::any_of(readers.begin(), readers.end(), [](const Client& c) { return c.kind != Client::Kind::kNode; });
}

}  // namespace hybridnet::passes
