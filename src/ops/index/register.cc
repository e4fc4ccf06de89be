#include "ops/index/family.h"
#include "ops/register_all.h"

namespace hybridnet::ops {

void register_index(OpRegistry& ops) {
  register_take(ops);
  register_embedding(ops);
  register_one_hot(ops);
  register_pick(ops);
  register_gather_nd(ops);
  register_advanced_index(ops);
  register_sort(ops);
  register_sequence(ops);
  register_boolean_mask(ops);
  register_index_copy(ops);
  register_ravel(ops);
  register_histogram(ops);
}

}  // namespace hybridnet::ops
