// Registration of the operators that draw random numbers.
#pragma once

#include "hybridnet/op.h"

namespace hybridnet::ops {

void register_draw(OpRegistry& ops);
void register_randint(OpRegistry& ops);
void register_shuffle(OpRegistry& ops);

}  // namespace hybridnet::ops
