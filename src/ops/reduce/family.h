// Registration functions of src/ops/reduce.
#pragma once

#include "hybridnet/op.h"

namespace hybridnet::ops {

void register_spread(OpRegistry& ops);
void register_sums(OpRegistry& ops);
void register_products(OpRegistry& ops);
void register_extremes(OpRegistry& ops);
void register_norm(OpRegistry& ops);
void register_arg_extremes(OpRegistry& ops);
void register_cumsum(OpRegistry& ops);
void register_moments(OpRegistry& ops);

}  // namespace hybridnet::ops
