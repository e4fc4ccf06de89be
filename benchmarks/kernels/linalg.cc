// Products and factorizations in double compared with Debian's OpenBLAS, which uses all cores. Ours also call OpenBLAS,
// another release, on one thread and in parts that do not depend on the number of cores; so this shows the cost of
// equal bits. LAPACK's matrices are column-major: our lower triangle is its upper one, and our rows are its columns.
#include "kernels/comparison.h"
#include "kernels/linalg/factorizations.h"
#include "kernels/product/gemm.h"

#if HYBRIDNET_HAS_OPENBLAS
extern "C" {
void openblas_set_num_threads(int threads);
void dgemm_(const char* transpose_a, const char* transpose_b, const int* m, const int* n, const int* k,
            const double* alpha, const double* a, const int* lda, const double* b, const int* ldb, const double* beta,
            double* c, const int* ldc);
void dpotrf_(const char* triangle, const int* n, double* a, const int* lda, int* info);
void dtrsm_(const char* side, const char* triangle, const char* transpose, const char* diagonal, const int* m,
            const int* n, const double* alpha, const double* a, const int* lda, double* b, const int* ldb);
void dgetrf_(const int* m, const int* n, double* a, const int* lda, int* rows, int* info);
void dgeqrf_(const int* m, const int* n, double* a, const int* lda, double* tau, double* work, const int* length,
             int* info);
void dorgqr_(const int* m, const int* n, const int* k, double* a, const int* lda, const double* tau, double* work,
             const int* length, int* info);
void dsyevd_(const char* job, const char* triangle, const int* n, double* a, const int* lda, double* values,
             double* work, const int* length, int* numbers, const int* numbers_length, int* info);
}
#endif

namespace hybridnet::benchmarks {

#if HYBRIDNET_HAS_OPENBLAS
namespace {

std::string square(int64_t n) { return std::to_string(n) + "x" + std::to_string(n); }

// A well-conditioned symmetric positive matrix.
Doubles positive(int64_t n) {
  const Doubles a(n * n);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < i; ++j) a.get()[i * n + j] = a.get()[j * n + i];
    a.get()[i * n + i] = 2 * static_cast<double>(n);
  }
  return a;
}

void restore(const Doubles& from, const Doubles& to) { std::copy_n(from.get(), from.size(), to.get()); }

void add_product(Comparisons& all, int64_t size) {
  const Doubles a(size * size), b(size * size), c(size * size), c_library(size * size);
  all.push_back({"matrix product in double", square(size),
                 [=] {
                   kernels::gemm(kernels::GemmShape::dense(false, false, size, size, size), 1.0, a.get(), b.get(), 0.0,
                                 c.get());
                 },
                 [=, n = static_cast<int>(size)] {
                   const double one = 1, zero = 0;
                   dgemm_("N", "N", &n, &n, &n, &one, b.get(), &n, a.get(), &n, &zero, c_library.get(), &n);
                 },
                 [=] { return difference(c, c_library); }});
}

void add_factorizations(Comparisons& all, int64_t size) {
  const int n = static_cast<int>(size);
  const Doubles a = positive(size), ours(size * size), theirs(size * size);
  const auto lower_off = [=] {
    Doubles mine = ours.copy(), library = theirs.copy();
    for (int64_t i = 0; i < size; ++i)
      for (int64_t j = i + 1; j < size; ++j) mine.get()[i * size + j] = library.get()[i * size + j] = 0;
    return difference(mine, library);
  };
  all.push_back({"Cholesky factorization in double", square(size),
                 [=] {
                   restore(a, ours);
                   kernels::cholesky(size, ours.get());
                 },
                 [=] {
                   int info = 0;
                   restore(a, theirs);
                   dpotrf_("U", &n, theirs.get(), &n, &info);
                 },
                 lower_off});

  const Doubles rhs(size * size), x(size * size), x_library(size * size);
  all.push_back({"triangular solve in double", square(size) + ", as many columns",
                 [=] {
                   restore(rhs, x);
                   kernels::solve_triangular<double>({}, size, size, a.get(), size, x.get(), size);
                 },
                 [=] {
                   const double one = 1;
                   restore(rhs, x_library);
                   dtrsm_("R", "U", "N", "N", &n, &n, &one, a.get(), &n, x_library.get(), &n);
                 },
                 [=] { return difference(x, x_library); }});

  // A and its transpose have different factors, but the same work.
  const Doubles general(size * size);
  all.push_back({"LU factorization in double", square(size),
                 [=] {
                   restore(general, ours);
                   const kernels::LuFactors<double> factors(size, ours.get());
                 },
                 [=] {
                   int info = 0;
                   std::vector<int> rows(static_cast<size_t>(n));
                   restore(general, theirs);
                   dgetrf_(&n, &n, theirs.get(), &n, rows.data(), &info);
                 },
                 [] { return 0.0; }});

  const Doubles l(size * size);
  all.push_back({"LQ factorization in double", square(size),
                 [=] {
                   restore(general, ours);
                   kernels::lq(size, size, ours.get(), l.get());
                 },
                 [=] {
                   int info = 0;
                   const int length = 64 * n;
                   std::vector<double> tau(static_cast<size_t>(n)), work(static_cast<size_t>(length));
                   restore(general, theirs);
                   dgeqrf_(&n, &n, theirs.get(), &n, tau.data(), work.data(), &length, &info);
                   dorgqr_(&n, &n, &n, theirs.get(), &n, tau.data(), work.data(), &length, &info);
                 },
                 [=] {
                   // Rows of Q are unique except for their signs.
                   Doubles mine = ours.copy(), library = theirs.copy();
                   for (int64_t i = 0; i < size * size; ++i) {
                     mine.get()[i] = std::abs(mine.get()[i]);
                     library.get()[i] = std::abs(library.get()[i]);
                   }
                   return difference(mine, library);
                 }});

  const Doubles values(size), values_library(size);
  all.push_back({"symmetric eigenvalues and vectors in double", square(size),
                 [=] {
                   restore(a, ours);
                   kernels::symmetric_eigen(size, ours.get(), values.get());
                 },
                 [=] {
                   int info = 0;
                   const int length = 1 + 6 * n + 2 * n * n, numbers_length = 3 + 5 * n;
                   std::vector<double> work(static_cast<size_t>(length));
                   std::vector<int> numbers(static_cast<size_t>(numbers_length));
                   restore(a, theirs);
                   dsyevd_("V", "U", &n, theirs.get(), &n, values_library.get(), work.data(), &length, numbers.data(),
                           &numbers_length, &info);
                 },
                 [=] { return difference(values, values_library); }});
}

}  // namespace

void add_linalg(Comparisons& all) {
  openblas_set_num_threads(current_cores());
  for (const int64_t size : {32, 256, 768}) add_product(all, size);
  for (const int64_t size : {16, 128, 400}) add_factorizations(all, size);
}
#else
void add_linalg(Comparisons&) {}  // libopenblas was not found at build time
#endif

}  // namespace hybridnet::benchmarks
