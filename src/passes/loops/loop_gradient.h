// The gradient of a loop: a loop over the same iterations in the other direction.
#pragma once

#include <vector>

#include "passes/gradient/control_gradient.h"

namespace hybridnet {

// Same contract as differentiate_control. A loop with a condition runs backward as many iterations as its last output
// says it ran forward. Throws UnboundedLoopError if nothing bounds the values to keep.
ControlGradient differentiate_loop(Graph& graph, Node& node, const std::vector<NodeEntry>& output_grads,
                                   const std::vector<bool>& wanted);

}  // namespace hybridnet
