// Loops whose carries only grow: `cache = concat(cache, row)` in every iteration, where nothing else reads the cache.
// The rows become a stacked output, which is joined to the first value once, after the loop. So the time of a loop
// grows with the number of its iterations, not with its square, and the loop is linked: its sizes no longer change.
#pragma once

#include "plan/compilation.h"

namespace hybridnet {

// True if all carries of free size only grow, by rows of one size, and gradients of carries are not cut off.
bool has_appended_carries(const Node& node);
// Returns such a loop in the form above, as a function of the node's inputs with one output per output of the node.
GraphDefinition with_appended_rows(const Node& node);

}  // namespace hybridnet
