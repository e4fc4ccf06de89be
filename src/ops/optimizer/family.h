// Registration of the optimizers' update operators.
#pragma once

#include "hybridnet/op.h"

namespace hybridnet::ops {

void register_sgd(OpRegistry& ops);
void register_nag(OpRegistry& ops);
void register_adam(OpRegistry& ops);

}  // namespace hybridnet::ops
