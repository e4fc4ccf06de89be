// Converts recorded steps to a graph.
#pragma once

#include "hybridnet/graph.h"
#include "hybridnet/ndarray.h"

namespace hybridnet {

// Returns the operators that computed `array` while recording. Leaves and constants become variables "var0", "var1",
// ... Throws GradientError if array was not recorded, or if the gradient of a step is Python code (autograd.Function).
Symbol recorded_graph(const NDArray& array);

}  // namespace hybridnet
