// The choice of the algorithm for a dense layer out = activation(data weight^T + bias).
#pragma once

#include <cstdint>

namespace hybridnet::onednn {

enum class DenseAlgorithm : int8_t {
  kProduct,        // kernels::gemm, with passes for bias (before) and activation (after)
  kFusedProduct,   // oneDNN's matmul of the plain weights, with bias and activation
  kPackedMatmul,   // the same with weights in the layout that matmul prefers
  kPackedProduct,  // kernels/product/packed_product.h
  kTileProduct     // kernels/product/tile_product.h
};

struct DenseShape {
  int64_t rows, features, hidden;
  bool activation;  // an operation that oneDNN can fuse follows the product
  bool frozen;      // the weights rarely change, so that packing them pays
};

// Depends on the shape and the instruction set alone, so that equal calls give equal bits.
DenseAlgorithm choose_dense(const DenseShape& shape);
// The same for a product of bfloat16: kFusedProduct, kPackedMatmul or kTileProduct.
DenseAlgorithm choose_half_dense(const DenseShape& shape);

}  // namespace hybridnet::onednn
