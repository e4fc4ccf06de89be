// What was recorded, as a graph.
#pragma once

#include "hybridnet/graph.h"
#include "hybridnet/ndarray.h"

namespace hybridnet {

// The operators that `array` was computed by while recording. Leaves and constants become variables "var0", "var1", ...
// Throws GradientError if array was not recorded, or by a step whose gradient is Python code (autograd.Function).
Symbol recorded_graph(const NDArray& array);

}  // namespace hybridnet
