#include "kernels/linalg/fourier.h"

#include <algorithm>
#include <bit>
#include <numbers>

namespace hybridnet::kernels {
namespace {

using Complex = Fourier::Complex;

Complex unit(double turns) { return std::polar(1.0, 2 * std::numbers::pi * turns); }

int64_t power_above(int64_t n) { return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n))); }

void reverse_bits(Temporary<Complex>& values) {
  const size_t n = values.size();
  for (size_t i = 1, j = 0; i < n; ++i) {
    size_t bit = n >> 1;
    for (; (j & bit) != 0; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(values[i], values[j]);
  }
}

}  // namespace

Fourier::Fourier(int64_t n) : n_(n), padded_(std::has_single_bit(static_cast<uint64_t>(n)) ? n : power_above(2 * n)) {
  for (int64_t k = 0; k < padded_ / 2; ++k)
    roots_.push_back(unit(-static_cast<double>(k) / static_cast<double>(padded_)));
  if (padded_ == n_) return;
  chirp_dft_.assign(static_cast<size_t>(padded_), {});
  for (int64_t k = 0; k < n_; ++k) {
    // k^2 modulo 2 n keeps the angle exact for long transforms.
    const auto square = static_cast<int64_t>(static_cast<__int128>(k) * k % (2 * n_));
    chirp_.push_back(unit(-static_cast<double>(square) / static_cast<double>(2 * n_)));
    chirp_dft_[static_cast<size_t>(k)] = std::conj(chirp_.back());
    if (k > 0) chirp_dft_[static_cast<size_t>(padded_ - k)] = std::conj(chirp_.back());
  }
  power_of_two(chirp_dft_, false);
}

void Fourier::power_of_two(Temporary<Complex>& values, bool inverse) const {
  reverse_bits(values);
  const auto n = static_cast<int64_t>(values.size());
  for (int64_t half = 1; half < n; half *= 2) {
    const int64_t stride = n / (2 * half);
    for (int64_t start = 0; start < n; start += 2 * half) {
      for (int64_t k = 0; k < half; ++k) {
        const Complex root = roots_[static_cast<size_t>(k * stride)];
        Complex &low = values[static_cast<size_t>(start + k)], &high = values[static_cast<size_t>(start + k + half)];
        const Complex turned = high * (inverse ? std::conj(root) : root);
        high = low - turned;
        low += turned;
      }
    }
  }
}

void Fourier::chirp(Complex* values) const {
  Temporary<Complex> work(static_cast<size_t>(padded_));
  for (int64_t k = 0; k < n_; ++k) work[static_cast<size_t>(k)] = values[k] * chirp_[static_cast<size_t>(k)];
  power_of_two(work, false);
  for (size_t k = 0; k < work.size(); ++k) work[k] *= chirp_dft_[k];
  power_of_two(work, true);
  const double scale = 1.0 / static_cast<double>(padded_);
  for (int64_t k = 0; k < n_; ++k) values[k] = work[static_cast<size_t>(k)] * chirp_[static_cast<size_t>(k)] * scale;
}

void Fourier::run(Complex* values, bool inverse) const {
  if (padded_ == n_) {
    Temporary<Complex> work(values, values + n_);
    power_of_two(work, inverse);
    std::copy(work.begin(), work.end(), values);
    return;
  }
  // The inverse is the conjugate of the transform of the conjugate.
  if (inverse) std::transform(values, values + n_, values, [](Complex x) { return std::conj(x); });
  chirp(values);
  if (inverse) std::transform(values, values + n_, values, [](Complex x) { return std::conj(x); });
}

}  // namespace hybridnet::kernels
