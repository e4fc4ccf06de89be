#include "ops/init/family.h"
#include "ops/register_all.h"

namespace hybridnet::ops {

void register_init(OpRegistry& ops) {
  register_fill(ops);
  register_arange(ops);
  register_linspace(ops);
  register_eye(ops);
}

}  // namespace hybridnet::ops
