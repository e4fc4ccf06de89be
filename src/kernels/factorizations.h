// Factorizations and triangular solves of dense row-major matrices, float and double. Large ones are done in blocks, so
// that most of the work is matrix products.
//   Golub and Van Loan: Matrix Computations, 4th edition: 3.1 (triangular), 3.4 (LU), 4.2 (Cholesky), 5.2
//   (Householder), 8.3 (QL).
#pragma once

#include <cstdint>
#include <vector>

#include "hybridnet/base.h"

namespace hybridnet::kernels {

// Replaces the lower triangle of a (n, n) by L with A = L L^T and the rest by zeros; reads the lower triangle only.
// Returns the first row whose pivot is not positive, or -1 on success.
template <typename T>
int64_t cholesky(int64_t n, T* a);

// Which system: op(A) X = B, with op transposing if asked. Only one triangle of A is read.
struct Triangle {
  bool lower = true, transpose = false;
};

// Replaces b (n, columns) by the X with op(A) X = b; a is (n, n). Row lengths are lda and ldb.
template <typename T>
void solve_triangular(Triangle t, int64_t n, int64_t columns, const T* a, int64_t lda, T* b, int64_t ldb);

// LU with row exchanges: P A = L U. `lu` is replaced by both factors (L has ones on its diagonal); rows[i] is the row
// of A that stands in row i of L U; sign is that of the permutation.
template <typename T>
struct LuFactors {
  int64_t n;
  T* lu;
  std::vector<int64_t> rows;
  int sign = 1;
  LuFactors(int64_t n, T* a);
  bool singular() const;
  // x (n, columns) with A x = b.
  void solve(const T* b, int64_t columns, T* x) const;
};

// A = L Q for a (rows, columns) with rows <= columns: replaces a by Q, whose rows are orthonormal, and fills l (rows,
// rows).
template <typename T>
void lq(int64_t rows, int64_t columns, T* a, T* l);

// A = U^T diag(values) U for symmetric a (n, n), of which the lower triangle is read: replaces a by U and fills values,
// rising. The largest element of every row of U is positive. Returns false if the iteration does not converge (values
// that are not finite).
template <typename T>
bool symmetric_eigen(int64_t n, T* a, T* values);

}  // namespace hybridnet::kernels
