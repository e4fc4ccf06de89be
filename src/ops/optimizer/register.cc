#include "ops/optimizer/family.h"
#include "ops/register_all.h"

namespace hybridnet::ops {

void register_optimizer(OpRegistry& ops) {
  register_sgd(ops);
  register_nag(ops);
  register_adam(ops);
  register_adamw(ops);
  register_lamb(ops);
  register_rmsprop(ops);
  register_adagrad(ops);
  register_leaders(ops);
  register_sign(ops);
  register_many_arrays(ops);
}

}  // namespace hybridnet::ops
