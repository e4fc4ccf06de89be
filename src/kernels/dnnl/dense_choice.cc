// Measured with oneDNN 3.2: microseconds, least of many interleaved runs, one core of an AMD EPYC without AVX-512.
//
//    rows x hidden x features | product | fused product | packed matmul | packed inner product
//       1 x   256 x   256     |     3.9 |           4.8 |           4.7 |     5.9
//       1 x  1024 x  1024     |    69   |          64   |          92   |   133
//       1 x  3072 x   768     |   420   |         224   |         461   |   732
//       2 x    10 x   784     |     6.4 |           7.4 |           2.5 |     3.4
//       2 x   768 x   768     |   113   |         111   |          60   |    49
//       4 x    64 x    64     |     1.5 |           2.4 |           1.9 |     1.6
//       4 x  1024 x  1024     |   448   |         414   |         289   |   193
//       8 x   256 x   256     |    20   |          21   |          16   |    15
//       8 x  1000 x  2048     |  1209   |        1145   |        1263   |   911
//       8 x  3072 x   768     |  1103   |         886   |        1566   |  1117
//      16 x  1024 x  1024     |   726   |         704   |         925   |   505
//      32 x   768 x   768     |   464   |         460   |         406   |   410
//      32 x  1024 x  1024     |  1038   |        1020   |        1930   |   858
//      64 x   512 x   512     |   367   |         366   |         394   |   329
//      64 x  1024 x   784     |  1161   |        1158   |        2706   |  1058
//     128 x   768 x   768     |  1579   |        1577   |        1584   |  1541
//     128 x  3072 x   768     |  7181   |        6600   |       18758   |  7211
//     512 x   512 x   512     |  2813   |        2802   |        3127   |  2629
//
// Here matmul packs nothing: it transposes the weights, and reads columns that lie a power of two apart slowly. The
// inner product packs: it wins by 1.2 to 2.3 for 2 to 32 rows, as long as the weights fit the caches, and by less than
// 10 % from 64 rows on, which a second copy of the weights is not worth.
//
// With two cores the plain product, which kernels::gemm cuts into tiles, wins over the fused one, which oneDNN shares
// among its own threads (gemm_choice.cc): bias and activation are part of each tile there too. With AVX-512
// kernels::gemm knows no tiles, matmul packs too, and wins by 3 to 4 for few rows.
#include "kernels/dnnl/dense_choice.h"

#include <oneapi/dnnl/dnnl.hpp>

namespace hybridnet::onednn {
namespace {

enum class Packs { kNothing, kInnerProduct, kMatmul };

Packs packs() {
  static const Packs found = [] {
    const auto has = [isa = static_cast<int>(dnnl_get_effective_cpu_isa())](dnnl_cpu_isa_t wanted) {
      return (isa & static_cast<int>(wanted)) == static_cast<int>(wanted);
    };
    return has(dnnl_cpu_isa_avx512_core) ? Packs::kMatmul
           : has(dnnl_cpu_isa_avx2)      ? Packs::kInnerProduct
                                         : Packs::kNothing;
  }();
  return found;
}

constexpr int64_t kSmallProduct = 4096;              // multiplications: below, the call costs more than the work
constexpr int64_t kLargeWeights = int64_t{1} << 20;  // elements that one core reads in more time than two need to start
constexpr int64_t kMaxPackedWeights = int64_t{1} << 21;  // elements that stay in the caches
constexpr int64_t kMinPackedWeights = 4096;

bool pays_packed_inner_product(const DenseShape& s) {
  const int64_t weights = s.features * s.hidden;
  return s.rows >= 2 && s.rows <= 32 && weights >= kMinPackedWeights && weights <= kMaxPackedWeights;
}

}  // namespace

DenseAlgorithm choose_fused_dense(const DenseShape& s) {
  if (!s.frozen || s.rows * s.features * s.hidden < kSmallProduct) return DenseAlgorithm::kFusedProduct;
  if (packs() == Packs::kMatmul) return DenseAlgorithm::kPackedMatmul;
  if (packs() == Packs::kInnerProduct && pays_packed_inner_product(s)) return DenseAlgorithm::kPackedInnerProduct;
  return DenseAlgorithm::kFusedProduct;
}

DenseAlgorithm choose_dense(const DenseShape& s) {
  if (s.rows * s.features * s.hidden < kSmallProduct) return DenseAlgorithm::kProduct;
  const DenseAlgorithm fused = choose_fused_dense(s);
  if (fused != DenseAlgorithm::kFusedProduct) return fused;
  if (packs() != Packs::kMatmul) return DenseAlgorithm::kProduct;
  const bool fusing_pays = s.rows >= (s.activation ? 16 : 32) || s.features * s.hidden >= kLargeWeights;
  return fusing_pays ? DenseAlgorithm::kFusedProduct : DenseAlgorithm::kProduct;
}

}  // namespace hybridnet::onednn
