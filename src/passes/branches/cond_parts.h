// What moves between the branches of a cond and what is around them.
#pragma once

#include <vector>

#include "hybridnet/pass.h"

namespace hybridnet::passes {

// Inputs of a body that get the same value become one: readers of the others read the first. outside: value of each.
// True if a reader has changed.
bool share_inputs(Graph& body, const std::vector<NodeEntry>& outside);

// Pure in the sense of moves between a branch and what is around it: it may run there as well as here.
bool may_cross_branch_border(const Graph& graph, const Node& node);

}  // namespace hybridnet::passes
