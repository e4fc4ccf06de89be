#include "ops/reduce/family.h"
#include "ops/register_all.h"

namespace hybridnet::ops {

void register_reduce(OpRegistry& ops) {
  register_spread(ops);
  register_sums(ops);
  register_products(ops);
  register_extremes(ops);
  register_norm(ops);
  register_arg_extremes(ops);
  register_cumsum(ops);
  register_moments(ops);
}

}  // namespace hybridnet::ops
