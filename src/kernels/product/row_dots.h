// Products of few rows with few or many rows: C = alpha * A B^T + beta * C if the rows of A and B are contiguous. Each
// element of C is one dot product of two rows, summed in an order that depends on k alone. Nothing is packed: so it is
// faster as long as packing or transposing B would cost more than the product.
#pragma once

#include "kernels/product/gemm.h"

namespace hybridnet::kernels {

// s: with transpose_b, without transpose_a. Runs on the calling thread.
void row_dots(const GemmShape& s, float alpha, const float* a, const float* b, float beta, float* c);

}  // namespace hybridnet::kernels
