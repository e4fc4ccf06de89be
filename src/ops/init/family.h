// Registration of the operators that make tensors from nothing.
#pragma once

#include "hybridnet/op.h"

namespace hybridnet::ops {

void register_fill(OpRegistry& ops);
void register_arange(OpRegistry& ops);
void register_linspace(OpRegistry& ops);
void register_eye(OpRegistry& ops);

}  // namespace hybridnet::ops
