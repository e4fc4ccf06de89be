// Finds states of a loop that are equal in every iteration.
#pragma once

#include <vector>

#include "graph/control/loop_view.h"

namespace hybridnet {

// Returns, per state, the first state that has the same value in every iteration, or the state itself. By coinduction:
// states with the same first value are assumed to be equal, and classes of states whose next values then differ are
// split until there are none.
std::vector<size_t> first_equal_states(const LoopView& view);

}  // namespace hybridnet
