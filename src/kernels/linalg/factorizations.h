// Factorizations and triangular solves of dense row-major matrices, float and double, by LAPACK, which interprets a
// row-major matrix as its transpose. Those that consist of products are computed in blocks, whose products use all
// cores.
//   Golub and Van Loan: Matrix Computations, 4th edition: 3.2.11 (LU in blocks), 4.2.6 (Cholesky in blocks).
#pragma once

#include <cstdint>

#include "storage/temporary.h"

namespace hybridnet::kernels {

// Replaces the lower triangle of a (n, n) by L with A = L L^T and the rest by zeros; reads the lower triangle only.
// Returns the first row whose pivot is not positive and finite, or -1 on success.
template <typename T>
int64_t cholesky(int64_t n, T* a);

// The system to solve: op(A) X = B, or with `right` X op(A) = B; op transposes if `transpose`. Only one triangle of A
// is read; with `unit` its diagonal is not read and counts as ones.
struct Triangle {
  bool lower = true, transpose = false, right = false, unit = false;
};

// Replaces b (rows, columns) by X; a is square. Row lengths are lda and ldb.
template <typename T>
void solve_triangular(Triangle t, int64_t rows, int64_t columns, const T* a, int64_t lda, T* b, int64_t ldb);

// LU factorization with row exchanges: A^T = P L U. `lu` is replaced by both factors, U^T below and L^T above the
// diagonal (of ones); row i was exchanged with exchanges[i], for i = 0, 1, ...
template <typename T>
struct LuFactors {
  int64_t n;
  T* lu;
  Temporary<int> exchanges;
  LuFactors(int64_t n, T* a);
  int sign() const;  // the sign of the permutation
  bool singular() const;
  // Computes x (n, columns) with A x = b.
  void solve(const T* b, int64_t columns, T* x) const;
};

// A = L Q for a (rows, columns) with rows <= columns: replaces a by Q, whose rows are orthonormal, and fills l (rows,
// rows).
template <typename T>
void lq(int64_t rows, int64_t columns, T* a, T* l);

// A = U^T diag(values) U for symmetric a (n, n), whose lower triangle is read: replaces a by U and fills values in
// ascending order. The largest element of every row of U is positive. Returns false for values that are not finite.
template <typename T>
bool symmetric_eigen(int64_t n, T* a, T* values);

}  // namespace hybridnet::kernels
