// The operators of neural networks, one function per file.
#pragma once

#include "hybridnet/op.h"

namespace hybridnet::ops {

void register_convolution(OpRegistry& ops);

}  // namespace hybridnet::ops
