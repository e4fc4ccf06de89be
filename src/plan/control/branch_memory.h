// Outputs that exist for one of two branches only, so that they can share memory: the values that a cond keeps for the
// gradient of the branch that ran, and the rows that a loop over the cond stacks.
#pragma once

#include <utility>
#include <vector>

#include "hybridnet/graph.h"

namespace hybridnet {

// The branch of a cond that writes an output.
enum class BranchSide : int8_t { kBoth, kThen, kElse };
BranchSide branch_side(const Node& cond, int output);

// Returns pairs of a loop's stacked outputs with rows of the same size, of which each iteration writes one or the
// other. Empty for other nodes.
std::vector<std::pair<int, int>> exclusive_rows(const Node& node);

}  // namespace hybridnet
