// The gradient of a cond: a cond on the same predicate, so that only the branch that ran goes backwards.
#pragma once

#include "passes/gradient/control_gradient.h"

namespace hybridnet {

// Same contract as differentiate_control.
ControlGradient differentiate_cond(Graph& graph, Node& node, const std::vector<NodeEntry>& output_grads,
                                   const std::vector<bool>& wanted);

}  // namespace hybridnet
