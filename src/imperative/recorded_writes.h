// Calls that write into arrays which the tape may know.
#pragma once

#include "imperative/invoke.h"

namespace hybridnet {

// As invoke_into(), with options.out. Inputs that are overwritten and that the step's gradient reads are copied before.
// Throws GradientError where an array that has a gradient of its own would be written while recording.
void invoke_over(const Op& op, const ParamsPtr& params, std::span<const NDArray> inputs, const InvokeOptions& options,
                 std::vector<NDArray>* results);

}  // namespace hybridnet
