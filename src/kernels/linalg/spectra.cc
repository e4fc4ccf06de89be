#include "kernels/linalg/spectra.h"

#include <algorithm>
#include <cmath>
#include <complex>

#include "hybridnet/error.h"
#include "kernels/linalg/lapack.h"
#include "storage/temporary.h"

namespace hybridnet::kernels {
namespace {

using Complex = std::complex<double>;

bool all_finite(int64_t size, const double* a) {
  return std::all_of(a, a + size, [](double x) { return std::isfinite(x); });
}

Temporary<double> buffer(int64_t size) { return Temporary<double>(static_cast<size_t>(size)); }

[[noreturn]] void throw_not_converged(const char* what) {
  throw ValueError({.expected = std::string("matrices whose ") + what + " LAPACK finds",
                    .because = "its iteration does not converge",
                    .fix = "scale the matrix, or add a small multiple of the identity"});
}

// Writes a column of v (n, n) from the elements x(i): rotated by the phase of the largest one, of length 1.
template <typename F>
void store_real(int64_t n, F&& x, double* v) {
  Complex largest = 0;
  for (int64_t i = 0; i < n; ++i)
    if (std::abs(x(i)) > std::abs(largest)) largest = x(i);
  double squares = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double real = (x(i) / largest).real();
    v[i * n] = real;
    squares += real * real;
  }
  for (int64_t i = 0; i < n; ++i) v[i * n] /= std::sqrt(squares);
}

}  // namespace

// A = U diag(s) V in rows is A^T = V^T diag(s) U^T in columns.
bool singular_values(int64_t rows, int64_t columns, const double* a, double* u, double* s, double* v) {
  const int64_t k = std::min(rows, columns);
  if (k == 0) return true;
  if (!all_finite(rows * columns, a)) return false;
  Temporary<double> copy(a, a + rows * columns);
  const int m = blas_size(columns), n = blas_size(rows);
  if (lapack<double>().gesdd(kColumnMajor, 'S', m, n, copy.data(), m, s, v, m, u, static_cast<int>(k)) != 0)
    throw_not_converged("singular values");
  for (int64_t j = 0; j < k; ++j) {
    double largest = 0;
    for (int64_t i = 0; i < rows; ++i)
      if (std::abs(u[i * k + j]) > std::abs(largest)) largest = u[i * k + j];
    if (largest > 0) continue;
    for (int64_t i = 0; i < rows; ++i) u[i * k + j] = -u[i * k + j];
    for (int64_t i = 0; i < columns; ++i) v[j * columns + i] = -v[j * columns + i];
  }
  return true;
}

EigenResult real_eigen(int64_t n, const double* a, double tolerance, double* w, double* v) {
  if (!all_finite(n * n, a)) return EigenResult::kNotFinite;
  if (n == 0) return EigenResult::kReal;
  Temporary<double> transposed = buffer(n * n), imaginary = buffer(n), vectors = buffer(n * n);
  double norm = 0;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j) {
      transposed[static_cast<size_t>(j * n + i)] = a[i * n + j];
      norm = std::max(norm, std::abs(a[i * n + j]));
    }
  const int size = blas_size(n);
  if (lapack<double>().geev(kColumnMajor, 'N', v ? 'V' : 'N', size, transposed.data(), size, w, imaginary.data(),
                            nullptr, size, vectors.data(), size) != 0)
    throw_not_converged("eigenvalues");
  for (const double part : imaginary)
    if (std::abs(part) > tolerance * norm) return EigenResult::kComplex;
  // The real and the imaginary part of the vectors of a pair of values follow each other.
  for (int64_t k = 0; v != nullptr && k < n; ++k) {
    const double* real = vectors.data() + k * n;
    if (imaginary[static_cast<size_t>(k)] == 0) {
      store_real(
          n, [&](int64_t i) { return Complex(real[i]); }, v + k);
      continue;
    }
    for (int64_t column = k; column <= k + 1; ++column)
      store_real(
          n, [&](int64_t i) { return Complex(real[i], real[n + i]); }, v + column);
    ++k;
  }
  return EigenResult::kReal;
}

}  // namespace hybridnet::kernels
