// Parts of graphs for compilers outside the library: chooses the nodes of a part, and replaces them by one node.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "hybridnet/pass.h"
#include "op/backend_part.h"

namespace hybridnet {

struct Partition {
  using Supports = std::function<bool(Graph&, Node&)>;
  // Compiles a graph whose inputs are the values that the nodes read, and whose outputs are the values that others
  // read. Null: the nodes stay as they are.
  using Make = std::function<Ref<BackendPart>(Graph part, BackendPart::Facts facts)>;
  std::string backend;
  size_t min_nodes = 1;
  Supports supports;
  Make make;
};

// Sets of nodes that `supports` accepts, each connected and convex: no value leaves a set and comes back to it, not
// even through other sets, so each can become one node. Sets hold forward nodes, or nodes that depend on an arriving
// gradient, not both. Never in a set: inputs and constants, random draws, code outside the library, updates of states,
// nodes whose shapes are known at run time only, and images that lie channels-last. Members stand in the order of the
// graph, sets in the order of their first members.
std::vector<std::vector<NodePtr>> convex_sets(Graph& graph, const Partition::Supports& supports);

// Replaces each of these sets of at least min_nodes nodes by one node. Passes on exceptions of supports and make.
bool partition(Graph& graph, const Partition& rules);

}  // namespace hybridnet
