#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "kernels/factorizations.h"
#include "kernels/gemm.h"
#include "kernels/spectra.h"

namespace hybridnet::kernels {
namespace {

using Buffer = std::vector<double>;

Buffer buffer(int64_t size) { return Buffer(static_cast<size_t>(size)); }

double dot(int64_t n, const double* a, const double* b) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

void rotate(int64_t n, double* a, double* b, double c, double s) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) {
    const double x = a[i], y = b[i];
    a[i] = c * x - s * y;
    b[i] = s * x + c * y;
  }
}

void transpose(int64_t rows, int64_t columns, const double* from, double* to) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) to[j * rows + i] = from[i * columns + j];
}

// W with W = J A has rows that are orthogonal to each other; J is orthogonal.
struct Orthogonalized {
  int64_t n;
  Buffer w, j;

  // Starts from the eigenvectors of A A^T, which leave little to rotate.
  explicit Orthogonalized(int64_t n, const double* a) : n(n), w(buffer(n * n)), j(buffer(n * n)) {
    Buffer values = buffer(n);
    gemm(GemmShape{false, true, n, n, n, n, n, n}, 1.0, a, a, 0.0, j.data());
    symmetric_eigen(n, j.data(), values.data());
    gemm(GemmShape{false, false, n, n, n, n, n, n}, 1.0, j.data(), a, 0.0, w.data());
    constexpr int kMaxSweeps = 40;
    for (int i = 0; i < kMaxSweeps && sweep(); ++i) {
    }
  }

  double* row(Buffer& of, int64_t i) { return of.data() + i * n; }

  // Rows that are rounding errors beside the largest one have no direction.
  bool sweep() {
    Buffer squares = buffer(n);
    for (int64_t i = 0; i < n; ++i) squares[static_cast<size_t>(i)] = dot(n, row(w, i), row(w, i));
    const double largest = n > 0 ? *std::max_element(squares.begin(), squares.end()) : 0;
    const double epsilon = std::numeric_limits<double>::epsilon(), noise = largest * epsilon * epsilon;
    bool rotated = false;
    for (int64_t i = 0; i < n; ++i)
      for (int64_t k = i + 1; k < n; ++k) {
        double &a = squares[static_cast<size_t>(i)], &b = squares[static_cast<size_t>(k)];
        if (a <= noise || b <= noise) continue;
        const double along = dot(n, row(w, i), row(w, k));
        if (std::abs(along) <= 4 * epsilon * std::sqrt(a * b)) continue;
        rotated = true;
        const double zeta = (b - a) / (2 * along);
        const double tangent = (zeta < 0 ? -1 : 1) / (std::abs(zeta) + std::hypot(1.0, zeta));
        const double c = 1 / std::hypot(1.0, tangent), s = c * tangent;
        rotate(n, row(w, i), row(w, k), c, s);
        rotate(n, row(j, i), row(j, k), c, s);
        a = dot(n, row(w, i), row(w, i));
        b = dot(n, row(w, k), row(w, k));
      }
    return rotated;
  }
};

// Makes row i of v orthogonal to the rows before it and of length 1, starting from unit vectors: for rows without a
// direction of their own.
void complete_row(int64_t n, double* v, int64_t i) {
  double* row = v + i * n;
  for (int64_t axis = 0; axis < n; ++axis) {
    std::fill_n(row, n, 0.0);
    row[axis] = 1;
    for (int pass = 0; pass < 2; ++pass)
      for (int64_t k = 0; k < i; ++k) {
        const double along = dot(n, row, v + k * n);
        for (int64_t c = 0; c < n; ++c) row[c] -= along * v[k * n + c];
      }
    const double length = std::sqrt(dot(n, row, row));
    if (length < 0.5 / std::sqrt(static_cast<double>(n))) continue;
    for (int64_t c = 0; c < n; ++c) row[c] /= length;
    return;
  }
}

// Square a.
void decompose(int64_t n, const double* a, double* u, double* s, double* v) {
  Orthogonalized found(n, a);
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), int64_t{0});
  Buffer lengths = buffer(n);
  for (int64_t i = 0; i < n; ++i)
    lengths[static_cast<size_t>(i)] = std::sqrt(dot(n, found.row(found.w, i), found.row(found.w, i)));
  std::stable_sort(order.begin(), order.end(), [&](int64_t x, int64_t y) {
    return lengths[static_cast<size_t>(x)] > lengths[static_cast<size_t>(y)];
  });
  for (int64_t i = 0; i < n; ++i) {
    const int64_t from = order[static_cast<size_t>(i)];
    s[i] = lengths[static_cast<size_t>(from)];
    for (int64_t k = 0; k < n; ++k) u[k * n + i] = found.row(found.j, from)[k];
    if (s[i] <= s[0] * std::numeric_limits<double>::epsilon()) {
      complete_row(n, v, i);
      continue;
    }
    for (int64_t k = 0; k < n; ++k) v[i * n + k] = found.row(found.w, from)[k] / s[i];
  }
}

}  // namespace

bool singular_values(int64_t rows, int64_t columns, const double* a, double* u, double* s, double* v) {
  const int64_t k = std::min(rows, columns);
  if (k == 0) return true;
  double largest = 0;
  for (int64_t i = 0; i < rows * columns; ++i) {
    if (!std::isfinite(a[i])) return false;
    largest = std::max(largest, std::abs(a[i]));
  }
  if (rows > columns) {
    Buffer turned = buffer(rows * columns), left = buffer(columns * columns), right = buffer(columns * rows);
    transpose(rows, columns, a, turned.data());
    singular_values(columns, rows, turned.data(), left.data(), s, right.data());
    transpose(columns, columns, left.data(), v);
    transpose(columns, rows, right.data(), u);
    return true;
  }
  const double scale = largest > 0 ? largest : 1;
  Buffer scaled(a, a + rows * columns);
  for (double& value : scaled) value /= scale;
  if (rows == columns) {
    decompose(rows, scaled.data(), u, s, v);
  } else {
    Buffer l = buffer(rows * rows), inner = buffer(rows * rows);
    lq(rows, columns, scaled.data(), l.data());
    decompose(rows, l.data(), u, s, inner.data());
    gemm(GemmShape{false, false, rows, columns, rows, rows, columns, columns}, 1.0, inner.data(), scaled.data(), 0.0,
         v);
  }
  for (int64_t i = 0; i < k; ++i) s[i] *= scale;
  return true;
}

}  // namespace hybridnet::kernels
