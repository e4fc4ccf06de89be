// Layers whose kernels can do more while the result is in registers.
#pragma once

#include "hybridnet/graph.h"

namespace hybridnet::passes {

// The operator that is this layer with an activation and an addend, or null.
const Op* fused_form(const Node& layer);

}  // namespace hybridnet::passes
