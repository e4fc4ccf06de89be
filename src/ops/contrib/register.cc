#include "ops/register_all.h"

namespace hybridnet::ops {

void register_contrib(OpRegistry& ops) { (void)ops; }

}  // namespace hybridnet::ops
