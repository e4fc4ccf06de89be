#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm.cc"
#include "kernels/gemm.h"

#include <algorithm>
#include <memory>

#include "hwy/foreach_target.h"  // compiles this file once per SIMD target
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace hybridnet::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<double>;

// The micro kernel keeps kRows x kColumns vectors of C in registers: 32 of them exist with AVX-512, 16 with other
// targets.
constexpr int64_t kRows = HWY_TARGET <= HWY_AVX3 ? 8 : 4;
constexpr int64_t kColumnVectors = HWY_TARGET == HWY_SCALAR ? 1 : HWY_TARGET > HWY_AVX2 ? 2 : 3;
constexpr int64_t kDepth = 256;    // rows of B and columns of A per packed block
constexpr int64_t kTileRows = 96;  // a tile of C: what one task computes; whole micro kernels on every target
constexpr int64_t kTileColumns = 240;

// a: kRows values per step of k; b: kColumnVectors vectors per step. Adds alpha times their product to the tile at c.
HWY_INLINE void micro_kernel(int64_t depth, const double* HWY_RESTRICT a, const double* HWY_RESTRICT b, double alpha,
                             double beta, bool first, double* c, int64_t ldc, int64_t rows, int64_t columns) {
  const D d;
  const int64_t lanes = static_cast<int64_t>(hn::Lanes(d));
  hn::Vec<D> acc[kRows][kColumnVectors];
  for (int64_t r = 0; r < kRows; ++r)
    for (int64_t v = 0; v < kColumnVectors; ++v) acc[r][v] = hn::Zero(d);
  for (int64_t x = 0; x < depth; ++x) {
    hn::Vec<D> right[kColumnVectors];
    for (int64_t v = 0; v < kColumnVectors; ++v) right[v] = hn::LoadU(d, b + v * lanes);
    for (int64_t r = 0; r < kRows; ++r) {
      const auto left = hn::Set(d, a[r]);
      for (int64_t v = 0; v < kColumnVectors; ++v) acc[r][v] = hn::MulAdd(left, right[v], acc[r][v]);
    }
    a += kRows;
    b += kColumnVectors * lanes;
  }
  // Only the first block of k applies beta; beta == 0 must not read C.
  const auto store = [&](double* target, double value) {
    const double before = !first ? *target : beta == 0.0 ? 0.0 : beta * *target;
    *target = before + alpha * value;
  };
  HWY_ALIGN double row[kColumnVectors * HWY_MAX_BYTES / sizeof(double)];
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t v = 0; v < kColumnVectors; ++v) hn::StoreU(acc[r][v], d, row + v * lanes);
    for (int64_t j = 0; j < columns; ++j) store(c + r * ldc + j, row[j]);
  }
}

// Copies `count` vectors of op(X), each `depth` long, into panels of `width` interleaved vectors, zero-filled at the
// end.
void pack(const double* x, int64_t vector_step, int64_t depth_step, int64_t count, int64_t depth, int64_t width,
          double* out) {
  for (int64_t first = 0; first < count; first += width) {
    const int64_t present = std::min(width, count - first);
    for (int64_t k = 0; k < depth; ++k) {
      const double* from = x + first * vector_step + k * depth_step;
      int64_t i = 0;
      for (; i < present; ++i) *out++ = from[i * vector_step];
      for (; i < width; ++i) *out++ = 0.0;
    }
  }
}

void gemm_tile(const GemmShape& s, double alpha, const double* a, const double* b, double beta, double* c, int64_t row,
               int64_t column, double* scratch) {
  const int64_t width = kColumnVectors * static_cast<int64_t>(hn::Lanes(D()));
  const int64_t rows = std::min(kTileRows, s.m - row), columns = std::min(kTileColumns, s.n - column);
  const int64_t a_row = s.transpose_a ? 1 : s.lda, a_col = s.transpose_a ? s.lda : 1;
  const int64_t b_row = s.transpose_b ? 1 : s.ldb, b_col = s.transpose_b ? s.ldb : 1;
  double* packed_a = scratch;
  double* packed_b = scratch + kTileRows * kDepth;
  for (int64_t k = 0; k < s.k; k += kDepth) {
    const int64_t depth = std::min(kDepth, s.k - k);
    pack(a + row * a_row + k * a_col, a_row, a_col, rows, depth, kRows, packed_a);
    pack(b + k * b_row + column * b_col, b_col, b_row, columns, depth, width, packed_b);
    for (int64_t j = 0; j < columns; j += width) {
      for (int64_t i = 0; i < rows; i += kRows) {
        micro_kernel(depth, packed_a + i * depth, packed_b + j * depth, alpha, beta, k == 0,
                     c + (row + i) * s.ldc + column + j, s.ldc, std::min(kRows, rows - i),
                     std::min(width, columns - j));
      }
    }
  }
}

void gemm_double(const GemmShape& s, double alpha, const double* a, const double* b, double beta, double* c) {
  const int64_t tiles_down = (s.m + kTileRows - 1) / kTileRows, tiles_across = (s.n + kTileColumns - 1) / kTileColumns;
  const double tile_ns = 0.1 * static_cast<double>(std::min(s.m, kTileRows) * std::min(s.n, kTileColumns) * s.k);
  parallel_for(tiles_down * tiles_across, tile_ns, [&](int64_t begin, int64_t end) {
    const std::unique_ptr<double[]> space(new double[(kTileRows + kTileColumns) * kDepth]);
    for (int64_t t = begin; t < end; ++t) {
      gemm_tile(s, alpha, a, b, beta, c, t / tiles_across * kTileRows, t % tiles_across * kTileColumns, space.get());
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace hybridnet::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <oneapi/dnnl/dnnl.h>

#include "hybridnet/error.h"
#include "kernels/dnnl/program.h"

namespace hybridnet::kernels {
namespace {
HWY_EXPORT(gemm_double);

template <typename T>
void scale(const GemmShape& s, T beta, T* c) {
  for (int64_t i = 0; i < s.m; ++i)
    for (int64_t j = 0; j < s.n; ++j) c[i * s.ldc + j] = beta == T(0) ? T(0) : beta * c[i * s.ldc + j];
}

// Below this many multiplications a plain loop beats any call overhead and packing.
constexpr int64_t kTiny = 512;

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

template <typename T>
bool gemm_trivial(const GemmShape& s, T alpha, const T* a, const T* b, T beta, T* c) {
  if (s.m == 0 || s.n == 0) return true;
  if (s.k == 0) return scale(s, beta, c), true;
  if (s.m * s.n <= kTiny && s.m * s.n * s.k <= kTiny) return gemm_tiny(s, alpha, a, b, beta, c), true;
  return false;
}
}  // namespace

void gemm(const GemmShape& s, float alpha, const float* a, const float* b, float beta, float* c) {
  if (gemm_trivial(s, alpha, a, b, beta, c)) return;
  const double flops = 2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k);
  const CoreLease lease(static_cast<int>(std::min<int64_t>(onednn::worthwhile_cores(flops), current_cores())));
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
  if (gemm_trivial(s, alpha, a, b, beta, c)) return;
  HWY_DYNAMIC_DISPATCH(gemm_double)(s, alpha, a, b, beta, c);
}

}  // namespace hybridnet::kernels
#endif  // HWY_ONCE
