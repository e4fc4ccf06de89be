// Outputs that exist for one of two branches only, so that their memory can be the same: what a cond gives for the
// gradient of the branch that ran, and the rows that a loop over such a cond stacks.
#pragma once

#include <utility>
#include <vector>

#include "hybridnet/graph.h"

namespace hybridnet {

// Which branch of a cond writes an output.
enum class BranchSide : int8_t { kBoth, kThen, kElse };
BranchSide branch_side(const Node& cond, int output);

// Pairs of a loop's stacked outputs whose rows have the same size, and of which each iteration writes the one or the
// other. Empty for other nodes.
std::vector<std::pair<int, int>> exclusive_rows(const Node& node);

}  // namespace hybridnet
