// Registration of the operators that move elements without computing on them.
#pragma once

#include "hybridnet/op.h"

namespace hybridnet::ops {

void register_reshape(OpRegistry& ops);
void register_reshape_like(OpRegistry& ops);
void register_expand_squeeze(OpRegistry& ops);
void register_transpose(OpRegistry& ops);
void register_slice(OpRegistry& ops);
void register_slice_axis(OpRegistry& ops);
void register_slice_assign(OpRegistry& ops);
void register_concat(OpRegistry& ops);
void register_stack(OpRegistry& ops);
void register_split(OpRegistry& ops);
void register_tile(OpRegistry& ops);
void register_reverse(OpRegistry& ops);
void register_pad(OpRegistry& ops);
void register_block_layout(OpRegistry& ops);
void register_diag(OpRegistry& ops);
void register_crop(OpRegistry& ops);
void register_shape_array(OpRegistry& ops);

}  // namespace hybridnet::ops
