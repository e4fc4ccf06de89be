// Registration of the operators that read or write elements named by an index tensor.
#pragma once

#include "hybridnet/op.h"

namespace hybridnet::ops {

void register_take(OpRegistry& ops);
void register_embedding(OpRegistry& ops);
void register_one_hot(OpRegistry& ops);
void register_pick(OpRegistry& ops);
void register_gather_nd(OpRegistry& ops);
void register_advanced_index(OpRegistry& ops);
void register_sort(OpRegistry& ops);
void register_sequence(OpRegistry& ops);
void register_boolean_mask(OpRegistry& ops);
void register_index_copy(OpRegistry& ops);
void register_ravel(OpRegistry& ops);
void register_histogram(OpRegistry& ops);

}  // namespace hybridnet::ops
