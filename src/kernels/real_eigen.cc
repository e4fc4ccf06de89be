#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <vector>

#include "kernels/spectra.h"

namespace hybridnet::kernels {
namespace {

using Complex = std::complex<double>;
constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

// A square matrix; A = Q H Q^* is kept with H in `h` and Q in `q` while H becomes upper triangular.
class Schur {
 public:
  Schur(int64_t n, const double* a) : n_(n), h_(a, a + n * n), q_(static_cast<size_t>(n * n)) {
    for (int64_t i = 0; i < n; ++i) q(i, i) = 1;
    for (const Complex& value : h_) norm_ = std::max(norm_, std::abs(value));
    to_hessenberg();
  }

  bool triangularize() {
    constexpr int kMaxSteps = 300;  // per eigenvalue
    int64_t last = n_ - 1;
    int steps = 0;
    while (last > 0) {
      int64_t first = last;
      while (first > 0 && !negligible(first)) --first;
      if (first == last) {
        --last;
        steps = 0;
        continue;
      }
      if (++steps > kMaxSteps) return false;
      step(first, last, steps % 11 == 10 ? exceptional(last) : wilkinson(last));
    }
    return true;
  }

  Complex value(int64_t i) { return h(i, i); }

  // The eigenvector of value k, of length 1.
  std::vector<Complex> vector(int64_t k) {
    std::vector<Complex> x(static_cast<size_t>(n_)), result(static_cast<size_t>(n_));
    x[static_cast<size_t>(k)] = 1;
    for (int64_t i = k - 1; i >= 0; --i) {
      Complex sum = 0;
      for (int64_t c = i + 1; c <= k; ++c) sum += h(i, c) * x[static_cast<size_t>(c)];
      Complex gap = value(k) - value(i);
      const double smallest = kEpsilon * std::max(norm_, std::numeric_limits<double>::min());
      if (std::abs(gap) < smallest) gap = smallest;
      x[static_cast<size_t>(i)] = sum / gap;
      rescale(x);
    }
    for (int64_t i = 0; i < n_; ++i)
      for (int64_t c = 0; c <= k; ++c) result[static_cast<size_t>(i)] += q(i, c) * x[static_cast<size_t>(c)];
    return result;
  }

  double norm() const { return norm_; }

 private:
  Complex& h(int64_t i, int64_t j) { return h_[static_cast<size_t>(i * n_ + j)]; }
  Complex& q(int64_t i, int64_t j) { return q_[static_cast<size_t>(i * n_ + j)]; }

  static void rescale(std::vector<Complex>& x) {
    double largest = 0;
    for (const Complex& value : x) largest = std::max(largest, std::abs(value));
    if (largest > 1e100)
      for (Complex& value : x) value /= largest;
  }

  bool negligible(int64_t i) {
    double beside = std::abs(h(i, i)) + std::abs(h(i - 1, i - 1));
    if (beside == 0) beside = norm_;
    if (std::abs(h(i, i - 1)) > kEpsilon * beside) return false;
    h(i, i - 1) = 0;
    return true;
  }

  // Rotation of rows (i, i + 1) that turns (x, y) into (r, 0): c real.
  struct Rotation {
    double c = 1;
    Complex s = 0;
    Rotation(Complex x, Complex y) {
      const double length = std::hypot(std::abs(x), std::abs(y));
      if (length == 0 || y == Complex(0)) return;
      if (x == Complex(0)) {
        c = 0;
        s = std::conj(y) / std::abs(y);
        return;
      }
      c = std::abs(x) / length;
      s = x / std::abs(x) * std::conj(y) / length;
    }
  };

  void rotate_rows(const Rotation& r, int64_t i, int64_t from) {
    for (int64_t k = from; k < n_; ++k) {
      const Complex a = h(i, k), b = h(i + 1, k);
      h(i, k) = r.c * a + r.s * b;
      h(i + 1, k) = -std::conj(r.s) * a + r.c * b;
    }
  }

  void rotate_columns(const Rotation& r, int64_t i, int64_t rows) {
    for (int64_t k = 0; k < rows; ++k) {
      const Complex a = h(k, i), b = h(k, i + 1);
      h(k, i) = r.c * a + std::conj(r.s) * b;
      h(k, i + 1) = -r.s * a + r.c * b;
    }
    for (int64_t k = 0; k < n_; ++k) {
      const Complex a = q(k, i), b = q(k, i + 1);
      q(k, i) = r.c * a + std::conj(r.s) * b;
      q(k, i + 1) = -r.s * a + r.c * b;
    }
  }

  // Rotates what stands below the first subdiagonal away, column by column from the bottom.
  void to_hessenberg() {
    for (int64_t column = 0; column + 2 < n_; ++column)
      for (int64_t i = n_ - 2; i > column; --i) {
        if (h(i + 1, column) == Complex(0)) continue;
        const Rotation r(h(i, column), h(i + 1, column));
        rotate_rows(r, i, column);
        h(i + 1, column) = 0;
        rotate_columns(r, i, n_);
      }
  }

  // The eigenvalue of the last two rows that is nearer to the last element.
  Complex wilkinson(int64_t last) {
    const Complex a = h(last - 1, last - 1), b = h(last - 1, last), c = h(last, last - 1), d = h(last, last);
    const Complex half = (a - d) / 2.0, root = std::sqrt(half * half + b * c);
    const Complex first = d + half + root, second = d + half - root;
    return std::abs(first - d) < std::abs(second - d) ? first : second;
  }

  Complex exceptional(int64_t last) {
    return h(last, last) + Complex(0.75 * std::abs(h(last, last - 1)), 0.25 * std::abs(h(last, last - 1)));
  }

  // H - shift = Q R; H becomes R Q + shift, within rows first to last.
  void step(int64_t first, int64_t last, Complex shift) {
    for (int64_t i = 0; i < n_; ++i) h(i, i) -= shift;
    std::vector<Rotation> rotations;
    for (int64_t i = first; i < last; ++i) {
      rotations.emplace_back(h(i, i), h(i + 1, i));
      rotate_rows(rotations.back(), i, i);
      h(i + 1, i) = 0;
    }
    for (int64_t i = first; i < last; ++i)
      rotate_columns(rotations[static_cast<size_t>(i - first)], i, std::min(i + 2, last + 1));
    for (int64_t i = 0; i < n_; ++i) h(i, i) += shift;
  }

  int64_t n_;
  std::vector<Complex> h_, q_;
  double norm_ = 0;
};

// Without the phase of its largest element, of length 1.
void store_real(const std::vector<Complex>& x, int64_t n, int64_t column, double* v) {
  const Complex largest =
      *std::max_element(x.begin(), x.end(), [](Complex a, Complex b) { return std::abs(a) < std::abs(b); });
  double squares = 0;
  for (int64_t i = 0; i < n; ++i) {
    const double real = (x[static_cast<size_t>(i)] / largest).real();
    v[i * n + column] = real;
    squares += real * real;
  }
  for (int64_t i = 0; i < n; ++i) v[i * n + column] /= std::sqrt(squares);
}

}  // namespace

EigenResult real_eigen(int64_t n, const double* a, double tolerance, double* w, double* v) {
  if (!std::all_of(a, a + n * n, [](double x) { return std::isfinite(x); })) return EigenResult::kNotFinite;
  if (n == 0) return EigenResult::kReal;
  Schur schur(n, a);
  if (!schur.triangularize()) return EigenResult::kNotFinite;
  for (int64_t i = 0; i < n; ++i) {
    if (std::abs(schur.value(i).imag()) > tolerance * schur.norm()) return EigenResult::kComplex;
    w[i] = schur.value(i).real();
  }
  for (int64_t i = 0; v != nullptr && i < n; ++i) store_real(schur.vector(i), n, i, v);
  return EigenResult::kReal;
}

}  // namespace hybridnet::kernels
