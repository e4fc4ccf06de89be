// Products of few rows with few or many rows: C = alpha * A B^T + beta * C where the rows of A and of B lie in memory
// one element after the other. Each element of C is one dot product of two rows, summed in an order that depends on k
// alone, and nothing is packed: so it wins while packing or transposing B would cost more than the product.
#pragma once

#include "kernels/gemm.h"

namespace hybridnet::kernels {

// s: transpose_b and not transpose_a. Runs on the calling thread.
void row_dots(const GemmShape& s, float alpha, const float* a, const float* b, float beta, float* c);

}  // namespace hybridnet::kernels
