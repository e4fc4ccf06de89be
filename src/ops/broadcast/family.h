// Registration functions of src/ops/broadcast.
#pragma once

#include "hybridnet/op.h"

namespace hybridnet::ops {

void register_broadcast_arithmetic(OpRegistry& ops);
void register_broadcast_to(OpRegistry& ops);
void register_broadcast_axes(OpRegistry& ops);
void register_broadcast_comparisons(OpRegistry& ops);
void register_broadcast_extremes(OpRegistry& ops);

// Both shapes broadcast to the output's by NumPy's rule; one dtype for all.
void infer_broadcast_binary(InferContext& c);

}  // namespace hybridnet::ops
