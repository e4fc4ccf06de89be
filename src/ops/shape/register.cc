#include "ops/register_all.h"
#include "ops/shape/family.h"

namespace hybridnet::ops {

void register_shape(OpRegistry& ops) {
  register_reshape(ops);
  register_reshape_like(ops);
  register_expand_squeeze(ops);
  register_transpose(ops);
  register_slice(ops);
  register_slice_axis(ops);
  register_slice_assign(ops);
  register_concat(ops);
  register_stack(ops);
  register_split(ops);
  register_tile(ops);
  register_reverse(ops);
  register_pad(ops);
  register_block_layout(ops);
  register_diag(ops);
  register_crop(ops);
  register_shape_array(ops);
}

}  // namespace hybridnet::ops
