// Loops that keep few states for their gradient and compute the rest again.
#pragma once

#include "hybridnet/pass.h"

namespace hybridnet {

// Value of the parameter `checkpoint` of loops whose backward body repeats the forward one: only the states at the
// begin of each iteration are kept.
inline constexpr char kRecompute[] = "recompute";

// Turns loops with checkpoints into loops over segments (checkpoint = kRecompute) of loops over the segment's
// iterations. Called before differentiation.
void lower_checkpoints(Graph& graph);

}  // namespace hybridnet
