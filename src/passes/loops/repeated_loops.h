// Loops that run again to recompute values for a gradient.
#pragma once

#include "hybridnet/pass.h"

namespace hybridnet {

// Stops the loops of the graph, and those in their bodies, from reporting when max_iterations ends them: the run that
// they repeat has reported it.
void silence_limits(Graph& graph);

}  // namespace hybridnet
