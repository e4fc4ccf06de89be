// Products of rows with packed weights, float32 and float64.
#pragma once

#include <cstdint>
#include <limits>

#include "kernels/product/gemm.h"

namespace hybridnet::kernels {

// True if products with weights that are packed once are faster than gemm and oneDNN here: from AVX2 on. Older
// instruction sets were not measured.
bool packed_products_pay();

// Weights (depth, columns) with any strides.
template <typename T>
struct ProductWeights {
  const T* data;
  int64_t depth, columns;
  int64_t depth_stride, column_stride;  // elements between neighbors
  static ProductWeights plain(const T* data, int64_t depth, int64_t columns) {
    return {data, depth, columns, columns, 1};
  }
  static ProductWeights transposed(const T* data, int64_t depth, int64_t columns) {
    return {data, depth, columns, 1, depth};
  }
};

// packed: the same number of elements, in the order in which products read them. Uses the cores of the calling thread.
void pack_weights(const ProductWeights<float>& weights, float* packed);
void pack_weights(const ProductWeights<double>& weights, double* packed);
// The inverse: weights.data receives the bits that were packed.
void unpack_weights(const float* packed, const ProductWeights<float>& weights);

// out = min(high, max(low, rows * weights + addend + bias)); NaN stays NaN. Uses the cores of the calling thread; the
// bits do not depend on their number.
template <typename T>
struct PackedProduct {
  const T* packed;
  int64_t depth, columns;
  const T* rows;  // (count, depth)
  int64_t count;
  T* out;                     // (count, columns)
  const T* addend = nullptr;  // (count, columns), or null; may alias out
  const T* bias = nullptr;    // (columns), or null
  T low = -std::numeric_limits<T>::infinity(), high = std::numeric_limits<T>::infinity();
  const GemmEnds* ends = nullptr;  // end() runs for each tile, on the thread that computed it
};
void packed_product(const PackedProduct<float>& p);
void packed_product(const PackedProduct<double>& p);

}  // namespace hybridnet::kernels
