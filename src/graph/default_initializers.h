// Initializers of parameters that start neither like a weight nor like a bias: their variables name the initializer.
#pragma once

#include <vector>

#include "hybridnet/graph.h"

namespace hybridnet {

// Sets the attribute __init__ of those variables among the inputs of `op` that need it and have none.
void set_default_initializers(const Op& op, const std::vector<NodeEntry>& inputs);

}  // namespace hybridnet
