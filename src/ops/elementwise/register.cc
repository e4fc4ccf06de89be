#include "ops/register_all.h"

namespace hybridnet::ops {

void register_elementwise(OpRegistry& ops) { (void)ops; }

}  // namespace hybridnet::ops
