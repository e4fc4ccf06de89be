// Parts of graphs for compilers outside the library: which nodes a part consists of, and the node that takes its place.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "hybridnet/pass.h"
#include "op/backend_part.h"

namespace hybridnet {

struct Partition {
  using Supports = std::function<bool(Graph&, Node&)>;
  // Compiles a graph whose inputs are what the nodes read and whose outputs are what others read of them. Null: the
  // nodes stay as they are.
  using Make = std::function<Ref<BackendPart>(Graph part, BackendPart::Facts facts)>;
  std::string backend;
  size_t min_nodes = 1;
  Supports supports;
  Make make;
};

// Sets of nodes that `supports` wants, each connected and convex: no value leaves a set and comes back to it, not even
// through other sets, so each can become one node. Sets hold forward nodes, or nodes that depend on an arriving
// gradient, not both. Never in a set: inputs and constants, random draws, code outside the library, updates of states,
// nodes whose shapes only running them tells, and images that lie channels-last. Members stand in the order of the
// graph, sets in that of their first members.
std::vector<std::vector<NodePtr>> convex_sets(Graph& graph, const Partition::Supports& supports);

// Replaces each such set of at least min_nodes nodes by one. Throws what supports and make throw.
bool partition(Graph& graph, const Partition& rules);

}  // namespace hybridnet
