// Inference for composed operators: their rules run on specs instead of values.
#pragma once

#include "hybridnet/op.h"

namespace hybridnet {

// Runs the rule on specs alone. If it asks for a spec that is not known yet, the outputs stay as they are.
void infer_composed(const Op& op, const void* params, InferContext& c);

}  // namespace hybridnet
