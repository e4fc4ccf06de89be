// Products of matrices of any dtype, for kernels of operators.
#pragma once

#include "hybridnet/op.h"
#include "kernels/gemm.h"

namespace hybridnet::ops {

// out[i] = op(a[i]) op(b[i]) for `batch` matrices that follow each other in memory. Every dtype of kNumeric; float16 and
// bfloat16 are multiplied and summed in float32.
void batched_product(DType dtype, int64_t batch, const kernels::GemmShape& s, const void* a, const void* b, void* out);

}  // namespace hybridnet::ops
