// Every register_* function of the operator families. A family adds its line here and in register_all.cc.
#pragma once

#include "hybridnet/op.h"

namespace hybridnet::ops {

void register_all(OpRegistry& ops);

// elementwise/, broadcast/, reduce/
void register_elementwise(OpRegistry& ops);
void register_broadcast(OpRegistry& ops);
void register_reduce(OpRegistry& ops);
// nn/
void register_nn(OpRegistry& ops);
// shape/, index/, linalg/, random/, init/, optimizer/
void register_shape(OpRegistry& ops);
void register_index(OpRegistry& ops);
void register_linalg(OpRegistry& ops);
void register_random(OpRegistry& ops);
void register_init(OpRegistry& ops);
void register_optimizer(OpRegistry& ops);
// image/, contrib/
void register_image(OpRegistry& ops);
void register_contrib(OpRegistry& ops);

}  // namespace hybridnet::ops
