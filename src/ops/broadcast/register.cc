#include "ops/broadcast/family.h"
#include "ops/register_all.h"

namespace hybridnet::ops {

void register_broadcast(OpRegistry& ops) {
  register_broadcast_arithmetic(ops);
  register_broadcast_to(ops);
  register_broadcast_axes(ops);
  register_broadcast_comparisons(ops);
  register_broadcast_extremes(ops);
}

}  // namespace hybridnet::ops
