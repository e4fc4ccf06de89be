// Products of small matrices: C = alpha * op(A) B + beta * C where the rows of B lie in memory one element after the
// other. Nothing is packed: so it wins while packing, or the call of a library, would cost more than the product. Each
// element of C is summed in the order of k.
#pragma once

#include "kernels/gemm.h"

namespace hybridnet::kernels {

// s: not transpose_b. Runs on the calling thread.
void direct_product(const GemmShape& s, float alpha, const float* a, const float* b, float beta, float* c);

}  // namespace hybridnet::kernels
