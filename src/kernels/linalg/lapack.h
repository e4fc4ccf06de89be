// BLAS and LAPACK, from OpenBLAS. Its library is next to libhybridnet.so and is loaded by the first call that needs it,
// with symbols of its own: it does not interfere with NumPy's and SciPy's copies. It computes on the calling thread
// alone, so that results have the same bits for any number of cores; work that is worth several cores is split here,
// into parts whose size depends on the shapes.
#pragma once

#include <cstdint>

namespace hybridnet::kernels {

// The constants of the interfaces CBLAS and LAPACKE.
enum BlasLayout : int { kRowMajor = 101, kColumnMajor = 102 };
enum BlasTranspose : int { kNoTranspose = 111, kTranspose = 112 };
enum BlasTriangle : int { kUpper = 121, kLower = 122 };
enum BlasDiagonal : int { kNonUnit = 131, kUnit = 132 };
enum BlasSide : int { kLeft = 141, kRight = 142 };

// The functions for T, float or double. LAPACK functions return 0, or the number i > 0 of the row that failed.
// LAPACKE's row-major layout copies its matrices: callers pass kColumnMajor and the transposed problem.
template <typename T>
struct Lapack {
  void (*gemm)(BlasLayout, BlasTranspose a_op, BlasTranspose b_op, int m, int n, int k, T alpha, const T* a, int lda,
               const T* b, int ldb, T beta, T* c, int ldc);
  void (*trsm)(BlasLayout, BlasSide, BlasTriangle, BlasTranspose, BlasDiagonal, int m, int n, T alpha, const T* a,
               int lda, T* b, int ldb);
  int (*potrf)(BlasLayout, char triangle, int n, T* a, int lda);
  int (*getrf)(BlasLayout, int m, int n, T* a, int lda, int* rows);
  int (*geqrf)(BlasLayout, int m, int n, T* a, int lda, T* tau);
  int (*orgqr)(BlasLayout, int m, int n, int k, T* a, int lda, const T* tau);
  int (*syevd)(BlasLayout, char vectors, char triangle, int n, T* a, int lda, T* values);
  int (*gesdd)(BlasLayout, char vectors, int m, int n, T* a, int lda, T* s, T* u, int ldu, T* vt, int ldvt);
  int (*geev)(BlasLayout, char left, char right, int n, T* a, int lda, T* real, T* imaginary, T* vl, int ldvl, T* vr,
              int ldvr);
};

// Throws Error if the library is missing.
template <typename T>
const Lapack<T>& lapack();

// OpenBLAS has 32-bit sizes. Throws Error for larger ones.
int blas_size(int64_t size);

}  // namespace hybridnet::kernels
