// Time of the packed product as a share of the plain product's (bias and activation as parts of its tiles), least of
// many interleaved runs on an AMD EPYC without AVX-512:
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
// oneDNN's inner product, which packs too, takes 1.00 to 1.07 of the packed product for 16 rows and more, 1.2 for two
// and 2.9 for 4 x 64 x 64. Packing in each call costs more than it gains. oneDNN's matmul packs nothing here: it
// transposes the weights, and reads columns that lie a power of two apart slowly. With two cores the plain product,
// which kernels::gemm cuts into tiles, wins over the fused one, which oneDNN shares among its own threads
// (gemm_choice.cc).
//
// With AVX-512 kernels::gemm knows no tiles, oneDNN's matmul packs, and wins by 3 to 4 for few rows.
#include "kernels/dnnl/dense_choice.h"

#include <oneapi/dnnl/dnnl.hpp>

#include "kernels/packed_product.h"

namespace hybridnet::onednn {
namespace {

enum class Packs { kNothing, kColumns, kMatmul };

Packs packs() {
  static const Packs found = [] {
    const auto has = [isa = static_cast<int>(dnnl_get_effective_cpu_isa())](dnnl_cpu_isa_t wanted) {
      return (isa & static_cast<int>(wanted)) == static_cast<int>(wanted);
    };
    if (has(dnnl_cpu_isa_avx512_core)) return Packs::kMatmul;
    return kernels::packed_products_pay() ? Packs::kColumns : Packs::kNothing;
  }();
  return found;
}

constexpr int64_t kSmallProduct = 4096;              // multiplications: below, the call costs more than the work
constexpr int64_t kLargeWeights = int64_t{1} << 20;  // elements that one core reads in more time than two need to start
constexpr int64_t kMinPackedWeights = 4096;

// Few rows wait for weights that come from memory, however these lie there. One row of larger weights gains 2 to 15 %,
// for a second copy of weights that were not read from a file.
int64_t most_packed_weights(int64_t rows) {
  constexpr int64_t kFewRows = 8;
  if (rows == 1) return int64_t{1} << 19;
  return rows <= kFewRows ? int64_t{1} << 23 : INT64_MAX;
}

bool pays_packed_product(const DenseShape& s) {
  constexpr int64_t kFewColumns = 32;  // of which a block would be too narrow
  const int64_t weights = s.features * s.hidden;
  return s.hidden >= kFewColumns && weights >= kMinPackedWeights && weights <= most_packed_weights(s.rows);
}

}  // namespace

DenseAlgorithm choose_fused_dense(const DenseShape& s) {
  if (!s.frozen || s.rows * s.features * s.hidden < kSmallProduct) return DenseAlgorithm::kFusedProduct;
  if (packs() == Packs::kMatmul) return DenseAlgorithm::kPackedMatmul;
  return DenseAlgorithm::kFusedProduct;
}

DenseAlgorithm choose_dense(const DenseShape& s) {
  if (s.rows * s.features * s.hidden < kSmallProduct) return DenseAlgorithm::kProduct;
  if (s.frozen && packs() == Packs::kColumns && pays_packed_product(s)) return DenseAlgorithm::kPackedProduct;
  const DenseAlgorithm fused = choose_fused_dense(s);
  if (fused != DenseAlgorithm::kFusedProduct) return fused;
  if (packs() != Packs::kMatmul) return DenseAlgorithm::kProduct;
  const bool fusing_pays = s.rows >= (s.activation ? 16 : 32) || s.features * s.hidden >= kLargeWeights;
  return fusing_pays ? DenseAlgorithm::kFusedProduct : DenseAlgorithm::kProduct;
}

}  // namespace hybridnet::onednn
