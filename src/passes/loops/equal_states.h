// Which values of a loop are equal in every iteration.
#pragma once

#include <vector>

#include "graph/control/loop_view.h"

namespace hybridnet {

// Per state the first one that has the same value in every iteration; itself, if there is none before. By coinduction:
// states that start alike are taken for equal, and classes of states whose next values then differ are split until none
// is left.
std::vector<size_t> first_equal_states(const LoopView& view);

}  // namespace hybridnet
