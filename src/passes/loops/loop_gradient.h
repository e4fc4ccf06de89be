// The gradient of a loop: a loop over the same iterations in the other direction.
#pragma once

#include <vector>

#include "passes/control_gradient.h"

namespace hybridnet {

// As differentiate_control. A loop with a condition goes back as many iterations as it went, which its last output
// tells. Throws UnboundedLoopError if nothing bounds what would be kept.
ControlGradient differentiate_loop(Graph& graph, Node& node, const std::vector<NodeEntry>& output_grads,
                                   const std::vector<bool>& wanted);

}  // namespace hybridnet
