// Layers whose kernels do further work while the result is in registers.
#pragma once

#include "hybridnet/graph.h"

namespace hybridnet::passes {

// Returns the operator for this layer with an activation and an addend, or null.
const Op* fused_form(const Node& layer);

}  // namespace hybridnet::passes
