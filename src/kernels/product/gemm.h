// Matrix products over plain row-major memory: C = alpha * op(A) op(B) + beta * C; op transposes if the shape says so.
// op(A) is (m, k), op(B) is (k, n), C is (m, n); lda, ldb and ldc are the row lengths of A, B and C in memory. With
// beta == 0, C is not read. Uses the cores that the calling thread may use. k == 0 gives beta * C.
#pragma once

#include <cstdint>

#include "device/stream.h"
#include "hybridnet/base.h"
#include "hybridnet/threads.h"
#include "kernels/elementwise/integers.h"
#include "kernels/product/device_product.h"

namespace hybridnet::kernels {

struct GemmShape {
  bool transpose_a = false, transpose_b = false;
  int64_t m = 0, n = 0, k = 0;
  int64_t lda = 0, ldb = 0, ldc = 0;

  // Dense operands: row lengths follow from the sizes.
  static GemmShape dense(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k) {
    return {transpose_a, transpose_b, m, n, k, transpose_a ? m : k, transpose_b ? k : n, n};
  }
};

// A rectangle of C.
struct GemmTile {
  int64_t row, column, rows, columns;
};

// Work on C before and after the product. A product is computed in tiles; begin and end of a tile run on the thread
// that computes it, while the tile is in that thread's cache.
class GemmEnds {
 public:
  virtual void begin(const GemmTile& tile) const = 0;  // writes the values that the product is added to
  virtual void end(const GemmTile& tile) const = 0;    // runs after the product

 protected:
  ~GemmEnds() = default;
};

void gemm(const GemmShape& s, float alpha, const float* a, const float* b, float beta, float* c,
          const GemmEnds* ends = nullptr);
void gemm(const GemmShape& s, double alpha, const double* a, const double* b, double beta, double* c,
          const GemmEnds* ends = nullptr);
// OpenBLAS's product for float and double: the same bits for any number of cores. gemm for double calls it.
template <typename T>
void gemm_in_tiles(const GemmShape& s, T alpha, const T* a, const T* b, T beta, T* c, const GemmEnds* ends = nullptr);

// Products of other types, accumulated in accumulator_t<T>, in which integers wrap around: a plain loop, not a fast
// one.
template <typename T>
void gemm_plain(const GemmShape& s, const T* a, const T* b, T* c) {
  if (device::current()) return on_device::gemm(s, dtype_of<T>::value, 1, a, b, 0, c);
  using Acc = wrapping_t<accumulator_t<T>>;
  const int64_t a_row = s.transpose_a ? 1 : s.lda, a_col = s.transpose_a ? s.lda : 1;
  const int64_t b_row = s.transpose_b ? 1 : s.ldb, b_col = s.transpose_b ? s.ldb : 1;
  parallel_for(s.m, 1.2 * static_cast<double>(s.n * s.k), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      for (int64_t j = 0; j < s.n; ++j) {
        Acc sum = 0;
        for (int64_t x = 0; x < s.k; ++x) {
          sum += static_cast<Acc>(a[i * a_row + x * a_col]) * static_cast<Acc>(b[x * b_row + j * b_col]);
        }
        c[i * s.ldc + j] = static_cast<T>(sum);
      }
    }
  });
}

// The operations of a product, which are roughly nanoseconds on one core; for cost estimates.
inline double gemm_flops(int64_t m, int64_t n, int64_t k) {
  return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
}
inline double gemm_cost_ns(int64_t m, int64_t n, int64_t k, DType dtype) {
  const double flops = gemm_flops(m, n, k);
  return flops / (dtype == DType::kFloat64 ? 20.0 : is_floating(dtype) ? 50.0 : 1.0) + 300;
}

}  // namespace hybridnet::kernels
