// Uses of a node's inputs as states: values that a run of the node replaces, itself or in a body.
#pragma once

#include <cstddef>

#include "hybridnet/graph.h"

namespace hybridnet {

// True if a run in this mode gives the input a new value.
bool writes_input(const Node& node, size_t input, bool train);

// True if the results of a run in this mode depend on the input. Batch normalization in training only writes its
// running statistics; an optimizer reads the state that it writes.
bool reads_input(const Node& node, size_t input, bool train);

}  // namespace hybridnet
