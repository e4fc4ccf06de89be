#include "ops/linalg/family.h"
#include "ops/register_all.h"

namespace hybridnet::ops {

void register_linalg(OpRegistry& ops) {
  register_dot(ops);
  register_batch_dot(ops);
  register_gemm(ops);
}

}  // namespace hybridnet::ops
