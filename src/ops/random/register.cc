#include "ops/random/family.h"
#include "ops/register_all.h"

namespace hybridnet::ops {

void register_random(OpRegistry& ops) {
  register_draw(ops);
  register_randint(ops);
  register_shuffle(ops);
}

}  // namespace hybridnet::ops
