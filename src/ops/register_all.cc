#include "ops/register_all.h"

namespace hybridnet::ops {

void register_all(OpRegistry& ops) {
  register_elementwise(ops);
  register_broadcast(ops);
  register_reduce(ops);
  register_nn(ops);
  register_shape(ops);
  register_index(ops);
  register_linalg(ops);
  register_random(ops);
  register_init(ops);
  register_optimizer(ops);
  register_image(ops);
  register_contrib(ops);
}

}  // namespace hybridnet::ops
