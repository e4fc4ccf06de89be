#include "ops/register_all.h"

namespace hybridnet::ops {

void register_broadcast(OpRegistry& ops) { (void)ops; }

}  // namespace hybridnet::ops
