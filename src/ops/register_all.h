// Declares every operator: calls the register_<name> of each src/ops/<family>/<name>.cc. The build generates the list
// (cmake/collect_operators.cmake).
#pragma once

#include "hybridnet/op.h"

namespace hybridnet::ops {

void register_all(OpRegistry& ops);

}  // namespace hybridnet::ops
