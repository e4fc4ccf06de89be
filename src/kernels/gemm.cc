#include "kernels/gemm.h"

#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <optional>

#include "base/team.h"
#include "hybridnet/error.h"
#include "kernels/dnnl/program.h"
#include "kernels/lapack.h"

namespace hybridnet::kernels {
namespace {
template <typename T>
void scale(const GemmShape& s, T beta, T* c) {
  for (int64_t i = 0; i < s.m; ++i)
    for (int64_t j = 0; j < s.n; ++j) c[i * s.ldc + j] = beta == T(0) ? T(0) : beta * c[i * s.ldc + j];
}

// Below this many multiplications a plain loop beats any call overhead and packing.
constexpr int64_t kTiny = 512;
// A tile of C: what one task computes.
constexpr int64_t kTileRows = 192, kTileColumns = 384;

template <typename T>
void gemm_tiny(const GemmShape& s, T alpha, const T* a, const T* b, T beta, T* c) {
  const int64_t a_row = s.transpose_a ? 1 : s.lda, a_col = s.transpose_a ? s.lda : 1;
  const int64_t b_row = s.transpose_b ? 1 : s.ldb, b_col = s.transpose_b ? s.ldb : 1;
  for (int64_t i = 0; i < s.m; ++i) {
    for (int64_t j = 0; j < s.n; ++j) {
      T sum = 0;
      for (int64_t x = 0; x < s.k; ++x) sum += a[i * a_row + x * a_col] * b[x * b_row + j * b_col];
      T& out = c[i * s.ldc + j];
      out = beta == T(0) ? alpha * sum : alpha * sum + beta * out;
    }
  }
}

// Products of a column with a row: each is one product and no sum, so that zeros keep their signs.
template <typename T>
void gemm_outer(const GemmShape& s, T alpha, const T* a, const T* b, T beta, T* c) {
  const int64_t a_row = s.transpose_a ? 1 : s.lda, b_column = s.transpose_b ? s.ldb : 1;
  parallel_for(s.m, 0.3 * static_cast<double>(s.n), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T factor = a[i * a_row];
      T* out = c + i * s.ldc;
      if (beta != T(0)) {
        for (int64_t j = 0; j < s.n; ++j) out[j] = alpha * (factor * b[j * b_column]) + beta * out[j];
      } else if (b_column != 1 || alpha != T(1)) {
        for (int64_t j = 0; j < s.n; ++j) out[j] = alpha * (factor * b[j * b_column]);
      } else {
        for (int64_t j = 0; j < s.n; ++j) out[j] = factor * b[j];
      }
    }
  });
}

template <typename T>
bool gemm_trivial(const GemmShape& s, T alpha, const T* a, const T* b, T beta, T* c) {
  if (s.m == 0 || s.n == 0) return true;
  if (s.k == 0) return scale(s, beta, c), true;
  if (s.k == 1) return gemm_outer(s, alpha, a, b, beta, c), true;
  if (s.m * s.n <= kTiny && s.m * s.n * s.k <= kTiny) return gemm_tiny(s, alpha, a, b, beta, c), true;
  return false;
}
}  // namespace

void gemm(const GemmShape& s, float alpha, const float* a, const float* b, float beta, float* c) {
  if (gemm_trivial(s, alpha, a, b, beta, c)) return;
  const double flops = 2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
  const CoreLease lease(static_cast<int>(std::min<int64_t>(onednn::worthwhile_cores(flops), current_cores())));
  std::optional<TeamRegion> region;
  if (lease.cores() > 1) region.emplace(lease.cores(), onednn::expected_ns(flops));
  // A row of length 0 or 1 leaves its stride free; oneDNN requires at least one.
  const dnnl_status_t status =
      dnnl_sgemm(s.transpose_a ? 'T' : 'N', s.transpose_b ? 'T' : 'N', s.m, s.n, s.k, alpha, a,
                 std::max<int64_t>(s.lda, 1), b, std::max<int64_t>(s.ldb, 1), beta, c, std::max<int64_t>(s.ldc, 1));
  if (status != dnnl_success) {
    throw Error(ErrorKind::kError,
                {.message = "the matrix product failed inside oneDNN, status " + std::to_string(status)});
  }
}

void gemm(const GemmShape& s, double alpha, const double* a, const double* b, double beta, double* c) {
  gemm_in_tiles(s, alpha, a, b, beta, c);
}

template <typename T>
void gemm_in_tiles(const GemmShape& s, T alpha, const T* a, const T* b, T beta, T* c) {
  if (gemm_trivial(s, alpha, a, b, beta, c)) return;
  const auto& blas = lapack<T>();
  const int64_t a_row = s.transpose_a ? 1 : s.lda, b_column = s.transpose_b ? s.ldb : 1;
  const int depth = blas_size(s.k);
  // A row of length 0 or 1 leaves its stride free.
  const int lda = blas_size(std::max(s.lda, s.transpose_a ? s.m : s.k)),
            ldb = blas_size(std::max(s.ldb, s.transpose_b ? s.k : s.n)), ldc = blas_size(std::max(s.ldc, s.n));
  const int64_t down = (s.m + kTileRows - 1) / kTileRows, across = (s.n + kTileColumns - 1) / kTileColumns;
  const double tile_ns = 0.03 * static_cast<double>(std::min(s.m, kTileRows) * std::min(s.n, kTileColumns) * s.k);
  parallel_for(down * across, tile_ns, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t row = t / across * kTileRows, column = t % across * kTileColumns;
      blas.gemm(kRowMajor, s.transpose_a ? kTranspose : kNoTranspose, s.transpose_b ? kTranspose : kNoTranspose,
                static_cast<int>(std::min(kTileRows, s.m - row)),
                static_cast<int>(std::min(kTileColumns, s.n - column)), depth, alpha, a + row * a_row, lda,
                b + column * b_column, ldb, beta, c + row * s.ldc + column, ldc);
    }
  });
}
template void gemm_in_tiles(const GemmShape&, float, const float*, const float*, float, float*);
template void gemm_in_tiles(const GemmShape&, double, const double*, const double*, double, double*);

}  // namespace hybridnet::kernels
