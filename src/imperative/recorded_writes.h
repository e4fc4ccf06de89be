// Calls that write into arrays which the tape may know.
#pragma once

#include "imperative/invoke.h"

namespace hybridnet {

// Does the same as invoke_into() where options.out is given. It copies the inputs that the gradient of the step reads
// and that the call overwrites. Throws GradientError where an array that has a gradient of its own would be written
// while recording.
void invoke_over(const Op& op, const ParamsPtr& params, std::span<const NDArray> inputs, const InvokeOptions& options,
                 std::vector<NDArray>* results);

}  // namespace hybridnet
