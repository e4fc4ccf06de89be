// Parameters that start neither as a weight nor as a bias does: their variables name an initializer.
#pragma once

#include <vector>

#include "hybridnet/graph.h"

namespace hybridnet {

// Gives variables among the inputs of a use of op the attribute __init__, where they have none.
void set_first_values(const Op& op, const std::vector<NodeEntry>& inputs);

}  // namespace hybridnet
