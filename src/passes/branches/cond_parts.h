// Helpers to move work between the branches of a cond and the graph around it.
#pragma once

#include <vector>

#include "hybridnet/pass.h"

namespace hybridnet::passes {

// Joins inputs of a body that have the same value: readers of the others read the first. outside: the value of each
// input. True if a reader has changed.
bool share_inputs(Graph& body, const std::vector<NodeEntry>& outside);

// True if a node may run in a branch as well as around it.
bool may_cross_branch_border(const Graph& graph, const Node& node);

}  // namespace hybridnet::passes
