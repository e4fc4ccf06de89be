#include "ops/random/family.h"
#include "ops/register_all.h"

namespace hybridnet::ops {

void register_random(OpRegistry& ops) { register_draw(ops); }

}  // namespace hybridnet::ops
