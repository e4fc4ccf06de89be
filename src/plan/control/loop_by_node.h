// Loops whose bodies cannot be linked: one call of the body's function per iteration, on the calling thread, recorded
// as the user's own loop over arrays would be.
#pragma once

#include <span>
#include <vector>

#include "graph/control/control_flow.h"
#include "plan/graph_function.h"

namespace hybridnet {

// arguments: one per input of the node. Results: one per output.
std::vector<NDArray> foreach_by_node(const Node& node, GraphFunction& body, std::span<const NDArray> arguments);

NDArray zeros(const TensorSpec& spec, Device device = {});

}  // namespace hybridnet
