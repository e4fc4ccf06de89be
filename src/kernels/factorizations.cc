#include "kernels/factorizations.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/gemm.h"

namespace hybridnet::kernels {
namespace {

constexpr int64_t kBlock = 64;

// c -= op(a) op(b), with the row lengths of the surrounding matrices.
template <typename T>
void subtract_product(bool transpose_a, bool transpose_b, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda,
                      const T* b, int64_t ldb, T* c, int64_t ldc) {
  if (m <= 0 || n <= 0 || k <= 0) return;
  gemm(GemmShape{transpose_a, transpose_b, m, n, k, lda, ldb, ldc}, T(-1), a, b, T(1), c);
}

template <typename T>
T dot(int64_t n, const T* a, const T* b) {
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

// Cholesky of one diagonal block; returns the failing row or -1.
template <typename T>
int64_t cholesky_block(int64_t n, T* a, int64_t lda) {
  for (int64_t j = 0; j < n; ++j) {
    T* row = a + j * lda;
    for (int64_t i = 0; i < j; ++i) {
      const T* other = a + i * lda;
      row[i] = (row[i] - dot(i, row, other)) / other[i];
    }
    const T pivot = row[j] - dot(j, row, row);
    if (!(pivot > 0)) return j;
    row[j] = std::sqrt(pivot);
  }
  return -1;
}

// op(A) X = B for one diagonal block: rows of B follow from each other, first to last or last to first.
template <typename T>
void solve_block(Triangle t, int64_t n, int64_t columns, const T* a, int64_t lda, T* b, int64_t ldb) {
  const bool forward = t.lower != t.transpose;
  for (int64_t step = 0; step < n; ++step) {
    const int64_t i = forward ? step : n - 1 - step;
    T* row = b + i * ldb;
    const int64_t begin = forward ? 0 : i + 1, end = forward ? i : n;
    for (int64_t k = begin; k < end; ++k) {
      const T factor = t.transpose ? a[k * lda + i] : a[i * lda + k];
      const T* known = b + k * ldb;
      for (int64_t j = 0; j < columns; ++j) row[j] -= factor * known[j];
    }
    const T pivot = a[i * lda + i];
    for (int64_t j = 0; j < columns; ++j) row[j] /= pivot;
  }
}

// Householder: v (length n) becomes the reflector that maps x onto (norm, 0, ..., 0); v[0] is 1, the result is beta of
// I - beta v v^T. *norm gets the mapped first element.
template <typename T>
T make_reflector(int64_t n, T* v, T* norm) {
  const T tail = dot(n - 1, v + 1, v + 1);
  const T first = v[0];
  v[0] = 1;
  *norm = first;
  if (tail == 0) return 0;
  const T length = std::sqrt(first * first + tail);
  *norm = first > 0 ? -length : length;
  const T scale = first - *norm;
  for (int64_t i = 1; i < n; ++i) v[i] /= scale;
  return (*norm - first) / *norm;
}

// row -= beta (row . v) v
template <typename T>
void reflect_row(int64_t n, T* row, const T* v, T beta) {
  const T along = beta * dot(n, row, v);
  for (int64_t i = 0; i < n; ++i) row[i] -= along * v[i];
}

// The symmetric matrix a becomes tridiagonal: diagonal d, below it e[0 .. n-2]; a is replaced by the rows of Q with
// A = Q^T T Q.
template <typename T>
void tridiagonalize(int64_t n, T* a, T* d, T* e) {
  std::vector<T> reflectors(static_cast<size_t>(n * n), T(0)), betas(static_cast<size_t>(n), T(0)),
      p(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = i + 1; j < n; ++j) a[i * n + j] = a[j * n + i];
  for (int64_t k = 0; k + 1 < n; ++k) {
    const int64_t m = n - k - 1;
    T* v = reflectors.data() + k * n;
    for (int64_t i = 0; i < m; ++i) v[i] = a[(k + 1 + i) * n + k];
    const T beta = make_reflector(m, v, e + k);
    betas[static_cast<size_t>(k)] = beta;
    if (beta == 0) continue;
    // a' = H a H on the trailing part: p = beta a v, w = p - beta/2 (p . v) v, a -= v w^T + w v^T.
    for (int64_t i = 0; i < m; ++i) p[static_cast<size_t>(i)] = beta * dot(m, a + (k + 1 + i) * n + k + 1, v);
    const T along = beta / 2 * dot(m, p.data(), v);
    for (int64_t i = 0; i < m; ++i) p[static_cast<size_t>(i)] -= along * v[i];
    for (int64_t i = 0; i < m; ++i) {
      T* row = a + (k + 1 + i) * n + k + 1;
      for (int64_t j = 0; j < m; ++j) row[j] -= v[i] * p[static_cast<size_t>(j)] + p[static_cast<size_t>(i)] * v[j];
    }
  }
  for (int64_t i = 0; i < n; ++i) d[i] = a[i * n + i];
  std::fill_n(a, n * n, T(0));
  for (int64_t i = 0; i < n; ++i) a[i * n + i] = 1;
  // Q = H_{n-2} ... H_0: each reflector, from the last to the first, acts on the columns of what was built before it.
  for (int64_t k = n - 2; k >= 0; --k) {
    const T beta = betas[static_cast<size_t>(k)];
    if (beta == 0) continue;
    for (int64_t row = k + 1; row < n; ++row)
      reflect_row(n - k - 1, a + row * n + k + 1, reflectors.data() + k * n, beta);
  }
}

// Rows i and i + 1 of u turned by the angle with cosine c and sine s.
template <typename T>
void rotate_rows(int64_t n, T* u, int64_t i, T c, T s) {
  T *low = u + i * n, *high = low + n;
  for (int64_t k = 0; k < n; ++k) {
    const T h = high[k], l = low[k];
    high[k] = s * l + c * h;
    low[k] = c * l - s * h;
  }
}

// One implicit QL step with Wilkinson's shift on rows [first, last] of the tridiagonal matrix.
template <typename T>
void ql_step(int64_t n, int64_t first, int64_t last, T* d, T* e, T* u) {
  const T half = (d[first + 1] - d[first]) / (2 * e[first]), root = std::hypot(half, T(1));
  T g = d[last] - d[first] + e[first] / (half + (half < 0 ? -root : root));
  T s = 1, c = 1, p = 0;
  for (int64_t i = last - 1; i >= first; --i) {
    const T f = s * e[i], b = c * e[i], r = std::hypot(f, g);
    e[i + 1] = r;
    if (r == 0) {  // the matrix splits here
      d[i + 1] -= p;
      e[last] = 0;
      return;
    }
    s = f / r;
    c = g / r;
    g = d[i + 1] - p;
    const T t = (d[i] - g) * s + 2 * c * b;
    p = s * t;
    d[i + 1] = g + p;
    g = c * t - b;
    rotate_rows(n, u, i, c, s);
  }
  d[first] -= p;
  e[first] = g;
  e[last] = 0;
}

// The diagonal d and subdiagonal e (e[n-1] unused) become eigenvalues; rows of u turn into eigenvectors.
template <typename T>
bool diagonalize(int64_t n, T* d, T* e, T* u) {
  constexpr int kMaxSteps = 60;
  for (int64_t first = 0; first < n; ++first) {
    for (int step = 0;; ++step) {
      int64_t last = first;
      while (last + 1 < n &&
             std::abs(e[last]) > std::numeric_limits<T>::epsilon() * (std::abs(d[last]) + std::abs(d[last + 1])))
        ++last;
      if (last == first) break;
      if (step == kMaxSteps || !std::isfinite(e[first])) return false;
      ql_step(n, first, last, d, e, u);
    }
  }
  return std::all_of(d, d + n, [](T v) { return std::isfinite(v); });
}

// Eigenvectors have no sign of their own: the first of their largest elements becomes positive.
template <typename T>
void turn_sign(int64_t n, T* v) {
  const T* largest = std::max_element(v, v + n, [](T a, T b) { return std::abs(a) < std::abs(b); });
  if (*largest < 0) std::transform(v, v + n, v, [](T x) { return -x; });
}

}  // namespace

template <typename T>
int64_t cholesky(int64_t n, T* a) {
  for (int64_t k = 0; k < n; k += kBlock) {
    const int64_t size = std::min(kBlock, n - k), rest = n - k - size;
    T* block = a + k * n + k;
    if (const int64_t bad = cholesky_block(size, block, n); bad >= 0) return k + bad;
    // The panel below: X L^T = A, row by row.
    T* panel = block + size * n;
    parallel_for(rest, 625.0, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        T* row = panel + i * n;
        for (int64_t j = 0; j < size; ++j) row[j] = (row[j] - dot(j, row, block + j * n)) / block[j * n + j];
      }
    });
    subtract_product(false, true, rest, rest, size, panel, n, panel, n, panel + size, n);
  }
  for (int64_t i = 0; i < n; ++i) std::fill(a + i * n + i + 1, a + (i + 1) * n, T(0));
  return -1;
}

template <typename T>
void solve_triangular(Triangle t, int64_t n, int64_t columns, const T* a, int64_t lda, T* b, int64_t ldb) {
  const bool forward = t.lower != t.transpose;
  const int64_t blocks = (n + kBlock - 1) / kBlock;
  for (int64_t step = 0; step < blocks; ++step) {
    const int64_t k = (forward ? step : blocks - 1 - step) * kBlock, size = std::min(kBlock, n - k);
    // What is solved already: before k going forward, after k + size going backward.
    const int64_t begin = forward ? 0 : k + size, known = forward ? k : n - k - size;
    const T* left = t.transpose ? a + begin * lda + k : a + k * lda + begin;
    subtract_product(t.transpose, false, size, columns, known, left, lda, b + begin * ldb, ldb, b + k * ldb, ldb);
    solve_block(t, size, columns, a + k * lda + k, lda, b + k * ldb, ldb);
  }
}

template <typename T>
LuFactors<T>::LuFactors(int64_t n, T* a) : n(n), lu(a), rows(static_cast<size_t>(n)) {
  std::iota(rows.begin(), rows.end(), int64_t{0});
  for (int64_t k = 0; k < n; k += kBlock) {
    const int64_t size = std::min(kBlock, n - k), end = k + size;
    for (int64_t j = k; j < end; ++j) {
      int64_t pivot = j;
      for (int64_t i = j + 1; i < n; ++i)
        if (std::abs(lu[i * n + j]) > std::abs(lu[pivot * n + j])) pivot = i;
      if (pivot != j) {
        std::swap_ranges(lu + j * n, lu + (j + 1) * n, lu + pivot * n);
        std::swap(rows[static_cast<size_t>(j)], rows[static_cast<size_t>(pivot)]);
        sign = -sign;
      }
      const T* top = lu + j * n;
      if (top[j] == 0) continue;
      for (int64_t i = j + 1; i < n; ++i) {
        T* row = lu + i * n;
        row[j] /= top[j];
        for (int64_t c = j + 1; c < end; ++c) row[c] -= row[j] * top[c];
      }
    }
    // To the right of the panel: U = L^-1 A, then the product of both panels.
    const int64_t rest = n - end;
    if (rest <= 0) continue;
    for (int64_t i = k + 1; i < end; ++i) {
      T* row = lu + i * n + end;
      for (int64_t j = k; j < i; ++j) {
        const T factor = lu[i * n + j];
        const T* known = lu + j * n + end;
        for (int64_t c = 0; c < rest; ++c) row[c] -= factor * known[c];
      }
    }
    subtract_product(false, false, rest, rest, size, lu + end * n + k, n, lu + k * n + end, n, lu + end * n + end, n);
  }
}

template <typename T>
bool LuFactors<T>::singular() const {
  for (int64_t i = 0; i < n; ++i)
    if (lu[i * n + i] == 0) return true;
  return false;
}

template <typename T>
void LuFactors<T>::solve(const T* b, int64_t columns, T* x) const {
  for (int64_t i = 0; i < n; ++i) std::copy_n(b + rows[static_cast<size_t>(i)] * columns, columns, x + i * columns);
  for (int64_t i = 0; i < n; ++i) {  // L, whose diagonal is not stored
    T* row = x + i * columns;
    for (int64_t k = 0; k < i; ++k) {
      const T factor = lu[i * n + k];
      const T* known = x + k * columns;
      for (int64_t j = 0; j < columns; ++j) row[j] -= factor * known[j];
    }
  }
  solve_triangular({false, false}, n, columns, lu, n, x, columns);
}

template <typename T>
void lq(int64_t rows, int64_t columns, T* a, T* l) {
  std::vector<T> betas(static_cast<size_t>(rows));
  std::fill_n(l, rows * rows, T(0));
  for (int64_t k = 0; k < rows; ++k) {
    T* v = a + k * columns + k;
    for (int64_t j = 0; j < k; ++j) l[k * rows + j] = a[k * columns + j];
    betas[static_cast<size_t>(k)] = make_reflector(columns - k, v, l + k * rows + k);
    for (int64_t i = k + 1; i < rows; ++i)
      reflect_row(columns - k, a + i * columns + k, v, betas[static_cast<size_t>(k)]);
  }
  // Q = the first rows of H_{rows-1} ... H_0, built from the last reflector to the first.
  std::vector<T> v(static_cast<size_t>(columns));
  for (int64_t k = rows - 1; k >= 0; --k) {
    std::copy_n(a + k * columns + k, columns - k, v.begin());
    std::fill_n(a + k * columns, columns, T(0));
    a[k * columns + k] = 1;
    for (int64_t i = k + 1; i < rows; ++i) a[i * columns + k] = 0;
    for (int64_t i = k; i < rows; ++i)
      reflect_row(columns - k, a + i * columns + k, v.data(), betas[static_cast<size_t>(k)]);
  }
}

template <typename T>
bool symmetric_eigen(int64_t n, T* a, T* values) {
  if (n == 0) return true;
  std::vector<T> e(static_cast<size_t>(n), T(0));
  tridiagonalize(n, a, values, e.data());
  if (!diagonalize(n, values, e.data(), a)) return false;
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) { return values[i] < values[j]; });
  const std::vector<T> vectors(a, a + n * n), unsorted(values, values + n);
  for (int64_t i = 0; i < n; ++i) {
    const int64_t from = order[static_cast<size_t>(i)];
    values[i] = unsorted[static_cast<size_t>(from)];
    std::copy_n(vectors.data() + from * n, n, a + i * n);
    turn_sign(n, a + i * n);
  }
  return true;
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
