// Calls that write into arrays that may be recorded on the tape.
#pragma once

#include "imperative/invoke.h"

namespace hybridnet {

// Does the same as invoke_into() with options.out. It copies the inputs that the gradient of the step reads and that
// the call overwrites. Throws GradientError if the call would write, while recording, an array that has a gradient of
// its own.
void invoke_over(const Op& op, const ParamsPtr& params, std::span<const NDArray> inputs, const InvokeOptions& options,
                 std::vector<NDArray>* results);

}  // namespace hybridnet
