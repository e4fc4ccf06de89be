#include "kernels/product/row_dots.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/product/row_dots.cc"
#include <hwy/foreach_target.h>
//
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>

#include "kernels/memory/vector_rows.h"

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels::HWY_NAMESPACE {
namespace {

using D = hn::CappedTag<float, 8>;
using V = hn::Vec<D>;

struct Scaling {
  float alpha, beta;
};

// How B is read. From memory, one stream of short rows is faster than several, because the machine's own prefetching
// begins anew with each row. GB/s of two cores of an AMD EPYC with AVX-512, 768 columns, one and four rows of A:
// several streams 24 and 17, one stream with the next row fetched 29 and 27; with 3072 columns 30 and 22, 26 and 19.
enum class Reading { kFromCache, kShortRows, kLongRows };

// Computes the dot products of kRows rows of A and kColumns rows of B: their sums fill half of the registers.
// kFetches: fetches the rows of B behind them.
template <int64_t kRows, int64_t kColumns, bool kFetches>
void block(const GemmShape& s, Scaling scaling, const float* HWY_RESTRICT a, const float* HWY_RESTRICT b,
           float* HWY_RESTRICT c) {
  const D d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  V sums[kRows][kColumns];
  for (int64_t r = 0; r < kRows; ++r)
    for (int64_t j = 0; j < kColumns; ++j) sums[r][j] = hn::Zero(d);
  const auto multiply = [&](const auto& vector, int64_t x) HWY_ATTR {
    V right[kColumns];
    for (int64_t j = 0; j < kColumns; ++j) {
      right[j] = vector.load(b + j * s.ldb + x);
      if constexpr (kFetches) hwy::Prefetch(b + (j + kColumns) * s.ldb + x);
    }
    for (int64_t r = 0; r < kRows; ++r) {
      const V left = vector.load(a + r * s.lda + x);
      for (int64_t j = 0; j < kColumns; ++j) sums[r][j] = hn::MulAdd(left, right[j], sums[r][j]);
    }
  };
  int64_t x = 0;
  for (; x + lanes <= s.k; x += lanes) multiply(WholeVector<D>{d}, x);
  if (x < s.k) multiply(PartialVector<D>{d, s.k - x}, x);
  for (int64_t r = 0; r < kRows; ++r) {
    for (int64_t j = 0; j < kColumns; ++j) {
      const float product = scaling.alpha * hn::GetLane(hn::SumOfLanes(d, sums[r][j]));
      float& out = c[r * s.ldc + j];
      out = scaling.beta == 0 ? product : product + scaling.beta * out;
    }
  }
}

// Computes kRows rows with `columns` rows of B.
template <int64_t kRows, Reading kReading>
void rows_block(const GemmShape& s, Scaling scaling, int64_t columns, const float* a, const float* b, float* c) {
  constexpr int64_t kColumns = kReading == Reading::kShortRows ? 1 : kRows == 4 ? 3 : 4;
  constexpr bool kFetches = kReading == Reading::kShortRows || (kReading == Reading::kLongRows && kRows > 2);
  int64_t j = 0;
  for (; j + kColumns <= columns; j += kColumns) block<kRows, kColumns, kFetches>(s, scaling, a, b + j * s.ldb, c + j);
  for (; j < columns; ++j) block<kRows, 1, kFetches>(s, scaling, a, b + j * s.ldb, c + j);
}

template <Reading kReading>
void all_rows(const GemmShape& s, Scaling scaling, const float* a, const float* b, float* c) {
  constexpr int64_t kRows = 4;
  constexpr int64_t kColumns = 12;  // rows of B that stay in the cache for all rows of A
  const int64_t groups = (s.m + kRows - 1) / kRows;
  for (int64_t j = 0; j < s.n; j += kColumns) {
    const int64_t columns = std::min(kColumns, s.n - j);
    const float* right = b + j * s.ldb;
    for (int64_t g = 0; g < groups; ++g) {  // 5 rows are split into 3 and 2
      const int64_t first = s.m * g / groups, rows = s.m * (g + 1) / groups - first;
      const float* left = a + first * s.lda;
      float* out = c + first * s.ldc + j;
      switch (rows) {
        case 1:
          rows_block<1, kReading>(s, scaling, columns, left, right, out);
          break;
        case 2:
          rows_block<2, kReading>(s, scaling, columns, left, right, out);
          break;
        case 3:
          rows_block<3, kReading>(s, scaling, columns, left, right, out);
          break;
        default:
          rows_block<4, kReading>(s, scaling, columns, left, right, out);
      }
    }
  }
}

void run(const GemmShape& s, float alpha, const float* a, const float* b, float beta, float* c) {
  constexpr int64_t kLargeMatrix = int64_t{1} << 18, kLongRow = 1536;  // elements; a core's caches hold less
  const Scaling scaling{alpha, beta};
  if (s.n * s.k < kLargeMatrix) return all_rows<Reading::kFromCache>(s, scaling, a, b, c);
  s.k < kLongRow ? all_rows<Reading::kShortRows>(s, scaling, a, b, c)
                 : all_rows<Reading::kLongRows>(s, scaling, a, b, c);
}

}  // namespace
}  // namespace hybridnet::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hybridnet::kernels {
namespace {
HWY_EXPORT(run);
}
void row_dots(const GemmShape& s, float alpha, const float* a, const float* b, float beta, float* c) {
  HWY_DYNAMIC_DISPATCH(run)(s, alpha, a, b, beta, c);
}
}  // namespace hybridnet::kernels
#endif
