// Products of small matrices: C = alpha * op(A) B + beta * C if the rows of B are contiguous. Nothing is packed, so it
// is faster than packing, or the call of a library, as long as these cost more than the product. Each element of C is
// summed in the order of k.
#pragma once

#include "kernels/product/gemm.h"

namespace hybridnet::kernels {

// s: without transpose_b. Runs on the calling thread.
void small_product(const GemmShape& s, float alpha, const float* a, const float* b, float beta, float* c);

}  // namespace hybridnet::kernels
