// Registration of the operators that read or write elements named by an index tensor.
#pragma once

#include "hybridnet/op.h"

namespace hybridnet::ops {

void register_take(OpRegistry& ops);
void register_embedding(OpRegistry& ops);
void register_one_hot(OpRegistry& ops);
void register_pick(OpRegistry& ops);

}  // namespace hybridnet::ops
