// Matrix products and linear algebra, one function per file.
#pragma once

#include "hybridnet/op.h"

namespace hybridnet::ops {

void register_dot(OpRegistry& ops);
void register_batch_dot(OpRegistry& ops);
void register_gemm(OpRegistry& ops);

}  // namespace hybridnet::ops
