// Singular values and eigenvalues of dense row-major matrices, by LAPACK. All computations use double: in single
// precision, rounding would decide which values are small.
#pragma once

#include <cstdint>

namespace hybridnet::kernels {

// A = U diag(s) V with k = min(rows, columns): a (rows, columns), u (rows, k) with orthonormal columns, s (k)
// descending, v (k, columns) with orthonormal rows. Returns false for values that are not finite.
// The first of the elements of largest absolute value of every column of u is positive.
bool singular_values(int64_t rows, int64_t columns, const double* a, double* u, double* s, double* v);

// Real eigenvalues w (n) of a (n, n) and eigenvectors of length 1 as the columns of v (n, n), which may be null.
// kComplex: a pair of eigenvalues has imaginary parts beyond tolerance * max |a_ij|.
// The element of largest absolute value of a vector is positive.
enum class EigenResult { kReal, kComplex, kNotFinite };
EigenResult real_eigen(int64_t n, const double* a, double tolerance, double* w, double* v);

}  // namespace hybridnet::kernels
