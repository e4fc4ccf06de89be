// Shape inference by NumPy's broadcasting rule.
#pragma once

#include "hybridnet/op.h"

namespace hybridnet::ops {

// Infers an output to whose shape both input shapes broadcast; one dtype for all.
void infer_broadcast_binary(InferContext& c);
// The same with a bool output.
void infer_broadcast_predicate(InferContext& c);

}  // namespace hybridnet::ops
