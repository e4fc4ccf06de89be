#include "ops/nn/family.h"
#include "ops/register_all.h"

namespace hybridnet::ops {

void register_nn(OpRegistry& ops) {
  register_fully_connected(ops);
  register_convolution(ops);
}

}  // namespace hybridnet::ops
