#include "ops/index/family.h"
#include "ops/register_all.h"

namespace hybridnet::ops {

void register_index(OpRegistry& ops) {
  register_take(ops);
  register_embedding(ops);
  register_one_hot(ops);
  register_pick(ops);
}

}  // namespace hybridnet::ops
