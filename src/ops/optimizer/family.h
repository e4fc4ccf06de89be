// Registration of the optimizers' update operators.
#pragma once

#include "hybridnet/op.h"

namespace hybridnet::ops {

void register_sgd(OpRegistry& ops);
void register_nag(OpRegistry& ops);
void register_adam(OpRegistry& ops);
void register_adamw(OpRegistry& ops);
void register_lamb(OpRegistry& ops);
void register_rmsprop(OpRegistry& ops);
void register_adagrad(OpRegistry& ops);
void register_leaders(OpRegistry& ops);
void register_sign(OpRegistry& ops);
void register_many_arrays(OpRegistry& ops);

}  // namespace hybridnet::ops
