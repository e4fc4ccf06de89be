// The time of the packed product relative to the plain product (both with bias and activation in their tiles), minimum
// of many interleaved runs on an AMD EPYC without AVX-512:
//
//    rows x hidden x features | one core | two cores
//       1 x    64 x    64     |   0.65   |
//       1 x   512 x   784     |   0.94   |
//       1 x  1024 x  1024     |   0.85   |   0.91
//       1 x  1000 x  2048     |   0.93   |   0.88
//       1 x  4096 x  4096     |   0.96   |   1.02
//       2 x    64 x    64     |   0.48   |
//       2 x   768 x   768     |   0.80   |   0.79
//       2 x   768 x  3072     |   0.87   |   0.86
//       4 x    64 x    64     |   0.52   |
//       4 x  1024 x  1024     |   0.73   |   0.80
//       4 x  4096 x  4096     |   1.21   |   1.26
//       8 x   256 x   256     |   0.77   |
//       8 x  1000 x  2048     |   0.97   |   0.78
//       8 x   768 x  3072     |   1.00   |   0.90
//      16 x  1024 x  1024     |   0.59   |   0.57
//      32 x  1024 x   256     |   0.85   |   0.82
//      64 x   512 x   784     |   0.89   |   0.89
//     128 x    40 x   512     |   0.93   |   0.93
//     128 x   768 x   768     |   0.95   |   0.89
//     128 x   768 x  3072     |   0.89   |   0.88
//     512 x   512 x   512     |   0.97   |   0.98
//
// oneDNN's inner product, which also packs, takes 1.00 to 1.07 times as long as the packed product for 16 rows or more,
// 1.2 for two and 2.9 for 4 x 64 x 64. Packing in each call costs more than it gains. oneDNN's matmul does not pack
// here: it transposes the weights, and is slow at reading columns that are a power of two apart. With two cores the
// plain product, which kernels::gemm splits into tiles, is faster than the fused one, which oneDNN shares among its own
// threads (gemm_choice.cc).
//
// With AVX-512, relative to the plain product and to oneDNN's matmul, which packs there, on one core of another AMD
// EPYC:
//
//    rows x hidden x features | product | matmul
//       1 x   256 x   256     |   0.58  |  0.58
//       1 x  1000 x  1024     |   0.89  |  0.89
//       1 x  3072 x   768     |   0.96  |  0.83
//       1 x  4096 x  4096     |   0.91  |  1.09   (two cores 1.33 and 1.07)
//       2 x   768 x   768     |   0.84  |  1.00
//       4 x  1024 x  1024     |   0.63  |  1.08
//       8 x  1000 x  2048     |   0.50  |  0.94
//       8 x  4096 x  4096     |   0.55  |  1.06
//      16 x  1024 x  1024     |   0.33  |  0.98
//      32 x    10 x   512     |   0.64  |  1.15
//      32 x    20 x   512     |   0.51  |  0.86
//      32 x   768 x   768     |   0.77  |  0.95
//      64 x   100 x   100     |   0.73  |  1.00
//      64 x  4096 x  4096     |   0.64  |  0.95
//     128 x    10 x   512     |   0.93  |  1.26
//     128 x  3072 x   768     |   0.84  |  0.92
//     512 x   512 x   512     |   0.97  |  1.02
//
// 8 rows of 24 to 47 take 0.1 us instead of 0.5 and 0.6. Creating a primitive takes 0.15 ms there, since its code is
// generated for each shape.
#include "kernels/dnnl/dense_choice.h"

#include <oneapi/dnnl/dnnl.hpp>

#include "kernels/product/packed_product.h"
#include "kernels/product/tile_product.h"

namespace hybridnet::onednn {
namespace {

// Whether oneDNN's matmul packs weights.
bool matmul_packs() {
  static const bool found = [] {
    constexpr int kWanted = static_cast<int>(dnnl_cpu_isa_avx512_core);
    return (static_cast<int>(dnnl_get_effective_cpu_isa()) & kWanted) == kWanted;
  }();
  return found;
}

constexpr int64_t kSmallProduct = 4096;  // multiplications: below, the call costs more than the work
constexpr int64_t kLargeWeights = int64_t{1} << 20;
constexpr int64_t kMinPackedWeights = 256;

// With few rows, reading the weights from memory dominates, whatever their layout. With AVX-512, packed ones are
// fetched while the rows are multiplied (product_tile.h).
int64_t most_packed_weights(int64_t rows) {
  constexpr int64_t kFewRows = 8;
  if (rows == 1) return int64_t{1} << 20;
  return rows <= kFewRows && !matmul_packs() ? int64_t{1} << 23 : INT64_MAX;
}

bool pays_packed_product(const DenseShape& s) {
  constexpr int64_t kFewColumns = 16;  // too few sums for a tile
  const int64_t weights = s.features * s.hidden;
  return s.frozen && kernels::packed_products_pay() && s.hidden >= kFewColumns && weights >= kMinPackedWeights &&
         weights <= most_packed_weights(s.rows);
}

}  // namespace

DenseAlgorithm choose_half_dense(const DenseShape& s) {
  const bool small = s.rows * s.features * s.hidden < kSmallProduct;
  if (s.frozen && !small && kernels::has_tile_products()) return DenseAlgorithm::kTileProduct;
  return s.frozen && !small && matmul_packs() ? DenseAlgorithm::kPackedMatmul : DenseAlgorithm::kFusedProduct;
}

DenseAlgorithm choose_dense(const DenseShape& s) {
  if (s.rows * s.features * s.hidden < kSmallProduct) return DenseAlgorithm::kProduct;
  if (pays_packed_product(s)) return DenseAlgorithm::kPackedProduct;
  if (s.rows == 1 || !matmul_packs()) return DenseAlgorithm::kProduct;
  if (s.frozen) return DenseAlgorithm::kPackedMatmul;
  const bool fusing_pays = s.rows >= (s.activation || s.features * s.hidden >= kLargeWeights ? 16 : 32);
  return fusing_pays ? DenseAlgorithm::kFusedProduct : DenseAlgorithm::kProduct;
}

}  // namespace hybridnet::onednn
