#include "ops/broadcast/family.h"
#include "ops/register_all.h"

namespace hybridnet::ops {

void register_broadcast(OpRegistry& ops) {
  register_broadcast_arithmetic(ops);
  register_broadcast_to(ops);
}

}  // namespace hybridnet::ops
