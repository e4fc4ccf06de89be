// Measured with oneDNN 3.2 and OpenBLAS 0.3.34 on one core of an AMD EPYC without AVX-512, whose limit is 104 GFLOP/s:
// GFLOP/s, the maximum of many interleaved runs. "T" before k or m: the operand is transposed, its row length is the
// other size.
//
//    m x    n x    k      | oneDNN | OpenBLAS | row dots
//    4 x   512 x   512 T  |    39  |      27  |     62
//    8 x  1024 x  1024 T  |    36  |      39  |     66
//   16 x   784 x   512 T  |    71  |      59  |     64
//   32 x  1024 x   256 T  |    84  |      75  |     57
//   16 x    10 x   512 T  |    30  |      38  |     64
//  128 x    10 x   512 T  |    53  |      53  |     63
//  128 x   512 x   784 T  |    93  |      89  |     64
//   16 x   512 x   512    |    57  |      59  |
//   16 x  1024 x  1024    |    45  |      63  |
//   32 x  1024 x   256    |    46  |      76  |
//   64 x   256 x   256    |    93  |      87  |
//   64 x  1536 x   256    |    66  |      84  |
//  128 x   512 x   512    |    65  |      92  |
//  128 x   784 x   512    |    99  |      92  |
//  512 x   512 x   512    |    64  |      96  |
// T 512 x  512 x    32    |    59  |      78  |
// T 1024 x 256 x    32    |    49  |      78  |
// T 512 x  512 x   128    |    60  |      92  |
// T 256 x  256 x   512    |    71  |      93  |
// T  10 x  512 x   128    |    63  |      44  |
// T 650 x  650 x    64    |    93  |      85  |
//
// oneDNN's kernel does not pack below about 500 rows and columns. It reads B, and a transposed A, down their columns:
// if rows are a power of two apart, these elements share a few cache lines. OpenBLAS packs both operands in each call,
// which does not pay for few rows. Two cores: oneDNN's own threads reach 87 to 140 GFLOP/s for 128 x 512 x 784 T, 128 x
// 784 x 512 and T 650 x 650 x 64, tiles on each core 175 to 195.
//
// Small products whose B is not transposed, one core, nanoseconds per call; AVX-512 on an AMD EPYC of 2024:
//
//                    |       AVX2      |     AVX-512
//    m x  n x  k     | oneDNN | direct | oneDNN | direct
//    8 x  8 x  8     |    278 |     79 |    235 |     49
//   16 x 16 x 16     |    521 |    150 |    243 |     99
//    4 x 64 x 64     |    719 |    435 |    367 |    171
//   32 x 32 x 32     |   1152 |    881 |    478 |    344
//   32 x 64 x 64     |   3160 |   3037 |   1263 |   1169
// T 32 x 32 x 32     |   1148 |    941 |    495 |    361
// T 64 x 64 x  8     |   1345 |   1558 |    534 |    615
//
// With SSE4, oneDNN is always fastest (34 against 27). With AVX-512 (a Xeon of 2023, one core | two cores) oneDNN's own
// threads reach 140 to 168 | 290 to 336 for most of these, tiles the same or less; row dots are faster for few rows and
// weights that exceed the caches:
//
//    m x    n x    k      | oneDNN     | OpenBLAS   | row dots
//    4 x   512 x   512 T  |  62 | 106  | 102 | 153  |  72 | 127
//    8 x  1024 x  1024 T  |  35 |  99  |  31 |  60  |  62 | 120
//   16 x   784 x   512 T  |  87 | 104  |  56 | 110  |  71 | 143
//   32 x  1024 x   256 T  | 125 | 222  |  82 | 158  |  65 | 133
#include "kernels/product/gemm_choice.h"

#include <algorithm>

#include "kernels/isa.h"

namespace hybridnet::kernels {
namespace {

bool is_slow_row_length(int64_t length, int64_t unit) { return length >= unit && length % unit == 0; }

// True if a call of oneDNN's sgemm, which allocates memory and takes a lock, costs more than the work. With AVX-512 (an
// AMD EPYC of 2024) 16 x 16 x 16 T takes 278 ns instead of 315, 32 x 32 x 32 T 1303 instead of 716.
bool pays_few_dots(const GemmShape& s, Isa isa) {
  constexpr int64_t kFewDots = 1024;
  const int64_t small_product = isa >= Isa::kAvx512 ? 1 << 12 : 1 << 15;
  return !s.transpose_a && s.transpose_b && s.m * s.n <= kFewDots && s.m * s.n * s.k <= small_product;
}

bool pays_row_dots(const GemmShape& s) {
  constexpr int64_t kMinDepth = 128, kFewRows = 8, kFewColumns = 16;
  return !s.transpose_a && s.transpose_b && s.k >= kMinDepth && (s.m <= kFewRows || s.n <= kFewColumns);
}

bool pays_direct(const GemmShape& s) {
  constexpr int64_t kSmallProduct = 1 << 15, kMinDepth = 16;
  return !s.transpose_b && s.m * s.n * s.k <= kSmallProduct && (!s.transpose_a || s.k >= kMinDepth);
}

bool pays_row_dots_avx512(const GemmShape& s) {
  constexpr int64_t kFewRows = 8, kLargeWeights = int64_t{1} << 18;
  return !s.transpose_a && s.transpose_b && s.m <= kFewRows && s.n * s.k >= kLargeWeights;
}

// True if oneDNN's kernel would read rows a power of two apart, and there is enough work to pay for packing them.
bool pays_packing(const GemmShape& s) {
  constexpr int64_t kMinRows = 16, kMinDepth = 32;
  if (s.m < kMinRows || s.k < kMinDepth) return false;
  const int64_t unit = s.transpose_a ? 256 : 512;  // elements
  return (!s.transpose_b && is_slow_row_length(s.ldb, unit)) || (s.transpose_a && is_slow_row_length(s.lda, unit));
}

// Two tiles as soon as a second core pays, more for larger products, so that larger machines have work for all cores.
int64_t wanted_tiles(double flops) {
  constexpr double kMinFlops = 2e6;  // about 20 us of one core
  constexpr double kTileFlops = 1.6e7;
  constexpr int64_t kMaxTiles = 64;
  if (flops < kMinFlops) return 1;
  int64_t tiles = 2;
  while (tiles < kMaxTiles && flops > 2 * kTileFlops * static_cast<double>(tiles)) tiles *= 2;
  return tiles;
}

int64_t half(int64_t size, int64_t unit) { return ((size + 1) / 2 + unit - 1) / unit * unit; }

}  // namespace

GemmAlgorithm choose_gemm(const GemmShape& s) {
  const Isa isa = isa_in_force().level;
  if (isa >= Isa::kAvx2 && pays_direct(s)) return GemmAlgorithm::kDirect;
  if (isa >= Isa::kAvx2 && pays_few_dots(s, isa)) return GemmAlgorithm::kRowDots;
  if (isa >= Isa::kAvx512) return pays_row_dots_avx512(s) ? GemmAlgorithm::kRowDots : GemmAlgorithm::kOneDnnThreads;
  if (isa == Isa::kAvx2 && pays_row_dots(s)) return GemmAlgorithm::kRowDots;
  if (isa == Isa::kAvx2 && pays_packing(s)) return GemmAlgorithm::kOpenBlas;
  return GemmAlgorithm::kOneDnn;
}

GemmTileSize gemm_tile_size(const GemmShape& s, bool packs) {
  const int64_t min_size = packs ? 128 : 64;
  GemmTileSize tile{s.m, s.n};
  bool first = true;
  for (int64_t tiles = wanted_tiles(gemm_flops(s.m, s.n, s.k)); tiles > 1; tiles /= 2) {
    const bool cut_columns = tile.columns >= tile.rows;
    int64_t& size = cut_columns ? tile.columns : tile.rows;
    if (!first && size < 2 * min_size) break;
    size = half(size, cut_columns ? GemmTileSize::kColumnUnit : GemmTileSize::kRowUnit);
    first = false;
  }
  return tile;
}

}  // namespace hybridnet::kernels
