// Shapes by NumPy's broadcasting rule.
#pragma once

#include "hybridnet/op.h"

namespace hybridnet::ops {

// Both shapes broadcast to the output's; one dtype for all.
void infer_broadcast_binary(InferContext& c);
// The same with an output of bool.
void infer_broadcast_predicate(InferContext& c);

}  // namespace hybridnet::ops
