#include "ops/optimizer/family.h"
#include "ops/register_all.h"

namespace hybridnet::ops {

void register_optimizer(OpRegistry& ops) {
  register_sgd(ops);
  register_nag(ops);
  register_adam(ops);
}

}  // namespace hybridnet::ops
