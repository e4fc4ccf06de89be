#include "kernels/linalg/factorizations.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/linalg/lapack.h"
#include "kernels/product/gemm.h"
#include "storage/temporary.h"

namespace hybridnet::kernels {
namespace {

constexpr int64_t kBlock = 384;    // rows of a diagonal block
constexpr int64_t kSystems = 192;  // rows or columns that one task solves
// Up to this many rows a plain loop is faster than a call of the library: by 2 to 5 times for matrices of 2 rows.
constexpr int64_t kSmallCholesky = 8, kSmallLu = 32, kSmallSolve = 8;

// c -= a op(b); all operands are parts of matrices with row length n.
template <typename T>
void subtract_product(bool transpose_b, int64_t rows, int64_t columns, int64_t depth, const T* a, const T* b, T* c,
                      int64_t n) {
  gemm_in_tiles(GemmShape{false, transpose_b, rows, columns, depth, n, n, n}, T(-1), a, b, T(1), c);
}

template <typename T>
bool is_pivot(T x) {
  return x > 0 && x <= std::numeric_limits<T>::max();
}

template <typename T>
int64_t cholesky_small(int64_t n, T* a) {
  for (int64_t i = 0; i < n; ++i) {
    T* row = a + i * n;
    for (int64_t j = 0; j <= i; ++j) {
      const T* other = a + j * n;
      T sum = row[j];
      for (int64_t k = 0; k < j; ++k) sum -= row[k] * other[k];
      if (j < i)
        row[j] = sum / other[j];
      else if (is_pivot(sum))
        row[i] = std::sqrt(sum);
      else
        return i;
    }
  }
  return -1;
}

// Cholesky factorization of one diagonal block; returns the failing row or -1. Non-finite values spread to the diagonal
// of their row.
template <typename T>
int64_t cholesky_block(int64_t n, T* a, int64_t lda) {
  const int failed = lapack<T>().potrf(kColumnMajor, 'U', blas_size(n), a, blas_size(lda));
  const int64_t done = failed > 0 ? failed - 1 : n;
  for (int64_t i = 0; i < done; ++i)
    if (!is_pivot(a[i * lda + i])) return i;
  return failed > 0 ? done : -1;
}

// Solves op(A) X = B; columns of B are b_column apart.
template <typename T>
void solve_small(Triangle t, int64_t n, int64_t columns, const T* a, int64_t lda, T* b, int64_t b_row,
                 int64_t b_column) {
  const bool forward = t.lower != t.transpose;
  for (int64_t step = 0; step < n; ++step) {
    const int64_t i = forward ? step : n - 1 - step;
    const int64_t begin = forward ? 0 : i + 1, end = forward ? i : n;
    for (int64_t k = begin; k < end; ++k) {
      const T factor = t.transpose ? a[k * lda + i] : a[i * lda + k];
      for (int64_t j = 0; j < columns; ++j) b[i * b_row + j * b_column] -= factor * b[k * b_row + j * b_column];
    }
    if (t.unit) continue;
    const T pivot = a[i * lda + i];
    for (int64_t j = 0; j < columns; ++j) b[i * b_row + j * b_column] /= pivot;
  }
}

// A^T = P L U, with the results of LAPACK's getrf. Both factors are transposed in a.
template <typename T>
void lu_small(int64_t n, T* a, int* exchanges) {
  for (int64_t k = 0; k < n; ++k) {
    T* top = a + k * n;
    const int64_t chosen = std::max_element(top + k, top + n, [](T x, T y) { return std::abs(x) < std::abs(y); }) - top;
    exchanges[k] = static_cast<int>(chosen);
    if (chosen != k)
      for (int64_t i = 0; i < n; ++i) std::swap(a[i * n + k], a[i * n + chosen]);
    if (top[k] == 0) continue;
    for (int64_t j = k + 1; j < n; ++j) top[j] /= top[k];
    for (int64_t i = k + 1; i < n; ++i) {
      T* row = a + i * n;
      for (int64_t j = k + 1; j < n; ++j) row[j] -= row[k] * top[j];
    }
  }
}

// The sign of an eigenvector is arbitrary: makes the first of its largest elements positive.
template <typename T>
void normalize_sign(int64_t n, T* v) {
  const T* largest = std::max_element(v, v + n, [](T a, T b) { return std::abs(a) < std::abs(b); });
  if (*largest < 0) std::transform(v, v + n, v, [](T x) { return -x; });
}

}  // namespace

template <typename T>
int64_t cholesky(int64_t n, T* a) {
  if (n <= kSmallCholesky) {
    if (const int64_t bad = cholesky_small(n, a); bad >= 0) return bad;
  }
  for (int64_t k = 0; k < n && n > kSmallCholesky; k += kBlock) {
    const int64_t size = std::min(kBlock, n - k), end = k + size;
    T* block = a + k * n + k;
    if (const int64_t bad = cholesky_block(size, block, n); bad >= 0) return k + bad;
    solve_triangular({.transpose = true, .right = true}, n - end, size, block, n, block + size * n, n);
    for (int64_t row = end; row < n; row += kBlock)  // to the right, up to the diagonal
      subtract_product(true, std::min(kBlock, n - row), std::min(row + kBlock, n) - end, size, a + row * n + k,
                       a + end * n + k, a + row * n + end, n);
  }
  for (int64_t i = 0; i < n; ++i) std::fill(a + i * n + i + 1, a + (i + 1) * n, T(0));
  return -1;
}

template <typename T>
void solve_triangular(Triangle t, int64_t rows, int64_t columns, const T* a, int64_t lda, T* b, int64_t ldb) {
  if (rows == 0 || columns == 0) return;
  const auto& blas = lapack<T>();
  const int64_t n = t.right ? columns : rows, systems = t.right ? rows : columns;
  if (n <= kSmallSolve && systems <= kSmallSolve) {
    if (t.right) t.transpose = !t.transpose;  // X op(A) = B is op(A)^T X^T = B^T
    return solve_small(t, n, systems, a, lda, b, t.right ? 1 : ldb, t.right ? ldb : 1);
  }
  const int size = blas_size(n), a_row = blas_size(lda), b_row = blas_size(ldb);
  const double block_ns = 0.03 * static_cast<double>(n * n * std::min(systems, kSystems));
  parallel_for((systems + kSystems - 1) / kSystems, block_ns, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin * kSystems; i < std::min(end * kSystems, systems); i += kSystems) {
      const int part = static_cast<int>(std::min(kSystems, systems - i));
      blas.trsm(kRowMajor, t.right ? kRight : kLeft, t.lower ? kLower : kUpper, t.transpose ? kTranspose : kNoTranspose,
                t.unit ? kUnit : kNonUnit, t.right ? part : size, t.right ? size : part, T(1), a, a_row,
                b + i * (t.right ? ldb : 1), b_row);
    }
  });
}

template <typename T>
LuFactors<T>::LuFactors(int64_t n, T* a) : n(n), lu(a), exchanges(static_cast<size_t>(n)) {
  if (n <= kSmallLu) lu_small(n, lu, exchanges.data());
  for (int64_t k = 0; k < n && n > kSmallLu; k += kBlock) {
    const int64_t size = std::min(kBlock, n - k), end = k + size;
    T* panel = lu + k * n + k;  // rows of A, which are columns of A^T
    int* const chosen = exchanges.data() + k;
    lapack<T>().getrf(kColumnMajor, blas_size(n - k), static_cast<int>(size), panel, blas_size(n), chosen);
    for (int64_t i = 0; i < size; ++i) chosen[i] += static_cast<int>(k) - 1;  // LAPACK counts from 1
    const auto exchange = [&](int64_t begin, int64_t last) {
      for (int64_t row = begin; row < last; ++row)
        for (int64_t i = k; i < end; ++i) std::swap(lu[row * n + i], lu[row * n + exchanges[static_cast<size_t>(i)]]);
    };
    exchange(0, k);
    exchange(end, n);
    solve_triangular({.lower = false, .right = true, .unit = true}, n - end, size, panel, n, panel + size * n, n);
    subtract_product(false, n - end, n - end, size, panel + size * n, panel + size, panel + size * n + size, n);
  }
}

template <typename T>
int LuFactors<T>::sign() const {
  int sign = 1;
  for (int64_t i = 0; i < n; ++i)
    if (exchanges[static_cast<size_t>(i)] != i) sign = -sign;
  return sign;
}

template <typename T>
bool LuFactors<T>::singular() const {
  for (int64_t i = 0; i < n; ++i)
    if (lu[i * n + i] == 0) return true;
  return false;
}

template <typename T>
void LuFactors<T>::solve(const T* b, int64_t columns, T* x) const {
  std::copy_n(b, n * columns, x);
  solve_triangular({}, n, columns, lu, n, x, columns);
  solve_triangular({.lower = false, .unit = true}, n, columns, lu, n, x, columns);
  for (int64_t i = n - 1; i >= 0; --i)
    if (const int64_t other = exchanges[static_cast<size_t>(i)]; other != i)
      std::swap_ranges(x + i * columns, x + (i + 1) * columns, x + other * columns);
}

template <typename T>
void lq(int64_t rows, int64_t columns, T* a, T* l) {
  if (rows == 0) return;
  const auto& library = lapack<T>();
  const int m = blas_size(columns), n = blas_size(rows);
  Temporary<T> tau(static_cast<size_t>(rows));
  library.geqrf(kColumnMajor, m, n, a, m, tau.data());
  for (int64_t i = 0; i < rows; ++i) {
    std::copy_n(a + i * columns, i + 1, l + i * rows);
    std::fill(l + i * rows + i + 1, l + (i + 1) * rows, T(0));
  }
  library.orgqr(kColumnMajor, m, n, n, a, m, tau.data());
}

template <typename T>
bool symmetric_eigen(int64_t n, T* a, T* values) {
  for (int64_t i = 0; i < n; ++i)
    if (!std::all_of(a + i * n, a + i * n + i + 1, [](T v) { return std::isfinite(v); })) return false;
  if (n == 0) return true;
  if (lapack<T>().syevd(kColumnMajor, 'V', 'U', blas_size(n), a, blas_size(n), values) != 0) return false;
  for (int64_t i = 0; i < n; ++i) normalize_sign(n, a + i * n);
  return std::all_of(values, values + n, [](T v) { return std::isfinite(v); });
}

template int64_t cholesky(int64_t, float*);
template int64_t cholesky(int64_t, double*);
template void solve_triangular(Triangle, int64_t, int64_t, const float*, int64_t, float*, int64_t);
template void solve_triangular(Triangle, int64_t, int64_t, const double*, int64_t, double*, int64_t);
template struct LuFactors<float>;
template struct LuFactors<double>;
template void lq(int64_t, int64_t, float*, float*);
template void lq(int64_t, int64_t, double*, double*);
template bool symmetric_eigen(int64_t, float*, float*);
template bool symmetric_eigen(int64_t, double*, double*);

}  // namespace hybridnet::kernels
