// Loops that run again, to have values for a gradient that were not kept.
#pragma once

#include "hybridnet/pass.h"

namespace hybridnet {

// The loops of the graph, and those in their bodies, no longer tell where max_iterations ended them: whoever computes
// values again has been told.
void silence_limits(Graph& graph);

}  // namespace hybridnet
