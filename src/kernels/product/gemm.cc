#include "kernels/product/gemm.h"

#include <oneapi/dnnl/dnnl.h>

#include <algorithm>

#include "device/stream.h"
#include "hybridnet/error.h"
#include "kernels/dnnl/program.h"
#include "kernels/linalg/lapack.h"
#include "kernels/product/device_product.h"
#include "kernels/product/gemm_choice.h"
#include "kernels/product/row_dots.h"
#include "kernels/product/small_product.h"

namespace hybridnet::kernels {
namespace {
template <typename T>
void scale(const GemmShape& s, T beta, T* c) {
  for (int64_t i = 0; i < s.m; ++i)
    for (int64_t j = 0; j < s.n; ++j) c[i * s.ldc + j] = beta == T(0) ? T(0) : beta * c[i * s.ldc + j];
}

// Below this many multiplications a plain loop is faster than any call and packing.
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

// Outer products: each element is one product and no sum, so that zeros keep their signs.
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

bool is_trivial(const GemmShape& s) { return s.k <= 1 || (s.m * s.n <= kTiny && s.m * s.n * s.k <= kTiny); }

template <typename T>
void gemm_trivial(const GemmShape& s, T alpha, const T* a, const T* b, T beta, T* c) {
  if (s.k == 0) return scale(s, beta, c);
  if (s.k == 1) return gemm_outer(s, alpha, a, b, beta, c);
  gemm_tiny(s, alpha, a, b, beta, c);
}

// Treats the whole of C as one tile, which `compute` computes.
template <typename F>
void as_one_tile(const GemmShape& s, const GemmEnds* ends, const F& compute) {
  const GemmTile whole{0, 0, s.m, s.n};
  if (ends) ends->begin(whole);
  compute();
  if (ends) ends->end(whole);
}

// Computes one tile of C on the calling thread.
void onednn_tile(const GemmShape& s, float alpha, const float* a, const float* b, float beta, float* c) {
  // The stride of operands with row length 0 or 1 is arbitrary; oneDNN requires at least one.
  const dnnl_status_t status =
      dnnl_sgemm(s.transpose_a ? 'T' : 'N', s.transpose_b ? 'T' : 'N', s.m, s.n, s.k, alpha, a,
                 std::max<int64_t>(s.lda, 1), b, std::max<int64_t>(s.ldb, 1), beta, c, std::max<int64_t>(s.ldc, 1));
  if (status != dnnl_success) {
    throw Error(ErrorKind::kError,
                {.message = "the matrix product failed inside oneDNN, status " + std::to_string(status)});
  }
}

template <typename T>
void openblas_tile(const GemmShape& s, T alpha, const T* a, const T* b, T beta, T* c) {
  // The stride of operands with row length 0 or 1 is arbitrary.
  const auto row = [](int64_t stride, int64_t length) { return blas_size(std::max(stride, length)); };
  lapack<T>().gemm(kRowMajor, s.transpose_a ? kTranspose : kNoTranspose, s.transpose_b ? kTranspose : kNoTranspose,
                   blas_size(s.m), blas_size(s.n), blas_size(s.k), alpha, a, row(s.lda, s.transpose_a ? s.m : s.k), b,
                   row(s.ldb, s.transpose_b ? s.k : s.n), beta, c, row(s.ldc, s.n));
}

// The begin of part i of `count` parts of a row or column: sizes of parts differ by one unit at most, so that cores get
// equal work.
int64_t part_begin(int64_t i, int64_t count, int64_t size, int64_t unit) {
  return std::min(size, (size + unit - 1) / unit * i / count * unit);
}

GemmTile tile_at(const GemmShape& s, int64_t row, int64_t down, int64_t column, int64_t across) {
  const auto down_to = [&](int64_t i) { return part_begin(i, down, s.m, GemmTileSize::kRowUnit); };
  const auto across_to = [&](int64_t j) { return part_begin(j, across, s.n, GemmTileSize::kColumnUnit); };
  const int64_t top = down_to(row), left = across_to(column);
  return {top, left, down_to(row + 1) - top, across_to(column + 1) - left};
}

// Calls f(shape, a, b, c) for each tile of C. The cores that the calling thread may use share the tiles.
template <typename T, typename F>
void for_each_tile(const GemmShape& s, GemmTileSize size, const T* a, const T* b, T* c, const GemmEnds* ends,
                   const F& f) {
  const int64_t a_row = s.transpose_a ? 1 : s.lda, b_column = s.transpose_b ? s.ldb : 1;
  const int64_t down = (s.m + size.rows - 1) / size.rows, across = (s.n + size.columns - 1) / size.columns;
  const auto tiles = [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const GemmTile tile = tile_at(s, t / across, down, t % across, across);
      GemmShape part = s;
      part.m = tile.rows;
      part.n = tile.columns;
      if (ends) ends->begin(tile);
      f(part, a + tile.row * a_row, b + tile.column * b_column, c + tile.row * s.ldc + tile.column);
      if (ends) ends->end(tile);
    }
  };
  parallel_for(down * across, int64_t{1}, tiles);
}

// A device computes C as a whole. Ends are functions of the host: callers that have some do their work before and after
// the product.
template <typename T>
void gemm_on_device(const GemmShape& s, T alpha, const T* a, const T* b, T beta, T* c, const GemmEnds* ends) {
  if (ends) throw UnsupportedError({.message = "a matrix product with work on its tiles runs on the CPU only"});
  on_device::gemm(s, dtype_of<T>::value, alpha, a, b, beta, c);
}

// Runs oneDNN's sgemm on its own threads.
void onednn_threads(const GemmShape& s, float alpha, const float* a, const float* b, float beta, float* c) {
  const double flops = gemm_flops(s.m, s.n, s.k);
  const CoreLease lease(static_cast<int>(std::min<int64_t>(onednn::worthwhile_cores(flops), current_cores())));
  onednn_tile(s, alpha, a, b, beta, c);
}
}  // namespace

void gemm(const GemmShape& s, float alpha, const float* a, const float* b, float beta, float* c, const GemmEnds* ends) {
  if (s.m == 0 || s.n == 0) return;
  if (device::current()) return gemm_on_device(s, alpha, a, b, beta, c, ends);
  if (is_trivial(s)) return as_one_tile(s, ends, [&] { gemm_trivial(s, alpha, a, b, beta, c); });
  const GemmAlgorithm algorithm = choose_gemm(s);
  if (algorithm == GemmAlgorithm::kOneDnnThreads)
    return as_one_tile(s, ends, [&] { onednn_threads(s, alpha, a, b, beta, c); });
  for_each_tile(s, gemm_tile_size(s, algorithm == GemmAlgorithm::kOpenBlas), a, b, c, ends,
                [&](const GemmShape& part, const float* left, const float* right, float* out) {
                  if (algorithm == GemmAlgorithm::kOpenBlas) {
                    openblas_tile(part, alpha, left, right, beta, out);
                  } else if (algorithm == GemmAlgorithm::kRowDots) {
                    row_dots(part, alpha, left, right, beta, out);
                  } else if (algorithm == GemmAlgorithm::kDirect) {
                    small_product(part, alpha, left, right, beta, out);
                  } else {
                    const CoreScope one(1);
                    onednn_tile(part, alpha, left, right, beta, out);
                  }
                });
}

void gemm(const GemmShape& s, double alpha, const double* a, const double* b, double beta, double* c,
          const GemmEnds* ends) {
  gemm_in_tiles(s, alpha, a, b, beta, c, ends);
}

template <typename T>
void gemm_in_tiles(const GemmShape& s, T alpha, const T* a, const T* b, T beta, T* c, const GemmEnds* ends) {
  if (s.m == 0 || s.n == 0) return;
  if (device::current()) return gemm_on_device(s, alpha, a, b, beta, c, ends);
  if (is_trivial(s)) return as_one_tile(s, ends, [&] { gemm_trivial(s, alpha, a, b, beta, c); });
  for_each_tile(s, gemm_tile_size(s, true), a, b, c, ends,
                [&](const GemmShape& part, const T* left, const T* right, T* out) {
                  openblas_tile(part, alpha, left, right, beta, out);
                });
}
template void gemm_in_tiles(const GemmShape&, float, const float*, const float*, float, float*, const GemmEnds*);
template void gemm_in_tiles(const GemmShape&, double, const double*, const double*, double, double*, const GemmEnds*);

}  // namespace hybridnet::kernels
