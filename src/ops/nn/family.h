// The operators of neural networks, one function per file.
#pragma once

#include "hybridnet/op.h"

namespace hybridnet::ops {

void register_convolution(OpRegistry& ops);
void register_fully_connected(OpRegistry& ops);

}  // namespace hybridnet::ops
