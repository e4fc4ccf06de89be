// The memory of branches. Outputs that exist for one of two branches only can share memory: the values that a cond
// keeps for the gradient of the branch that ran, and the rows that a loop over the cond stacks. An output that both
// branches pass on or write over an input can lie in the memory of that input.
#pragma once

#include <utility>
#include <vector>

#include "hybridnet/graph.h"
#include "hybridnet/op.h"

namespace hybridnet {

// The branch of a cond that writes an output.
enum class BranchSide : int8_t { kBoth, kThen, kElse };
BranchSide branch_side(const Node& cond, int output);

// Returns pairs of a loop's stacked outputs with rows of the same size, of which each iteration writes one or the
// other. Empty for other nodes.
std::vector<std::pair<int, int>> exclusive_rows(const Node& node);

// Returns the inputs of an operator, loop or branch whose memory its outputs may take over when nothing else reads
// them.
std::vector<Op::InplacePair> inplace_pairs(const Node& node);
// Returns the input that this output of a cond takes over; -1: none.
int input_written_over(const Node& cond, int output);

}  // namespace hybridnet
