#include "kernels/linalg/fourier.h"

#include <algorithm>
#include <bit>
#include <numbers>

namespace hybridnet::kernels {
namespace {

using Complex = std::complex<double>;
template <int kLanes>
using Numbers = Fourier::Numbers<kLanes>;
template <int kLanes>
using Vectors = Fourier::Vectors<kLanes>;

Complex unit(double turns) { return std::polar(1.0, 2 * std::numbers::pi * turns); }

int64_t power_above(int64_t n) { return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n))); }

template <int kLanes>
void reverse_bits(Vectors<kLanes>& values) {
  const size_t n = values.size();
  for (size_t i = 1, j = 0; i < n; ++i) {
    size_t bit = n >> 1;
    for (; (j & bit) != 0; bit >>= 1) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(values[i], values[j]);
  }
}

// low, high = low + high * root, low - high * root
template <int kLanes>
void butterfly(Numbers<kLanes>& low, Numbers<kLanes>& high, double re, double im) {
  for (int l = 0; l < kLanes; ++l) {
    const double product_re = high.re[l] * re - high.im[l] * im, product_im = high.re[l] * im + high.im[l] * re;
    high.re[l] = low.re[l] - product_re;
    high.im[l] = low.im[l] - product_im;
    low.re[l] += product_re;
    low.im[l] += product_im;
  }
}

template <int kLanes>
void multiply(Numbers<kLanes>& x, const Complex& by) {
  const double re = by.real(), im = by.imag();
  for (int l = 0; l < kLanes; ++l) {
    const double product = x.re[l] * re - x.im[l] * im;
    x.im[l] = x.re[l] * im + x.im[l] * re;
    x.re[l] = product;
  }
}

template <int kLanes>
void conjugate(Vectors<kLanes>& values) {
  for (Numbers<kLanes>& x : values)
    for (double& im : x.im) im = -im;
}

}  // namespace

Fourier::Fourier(int64_t n) : n_(n), padded_(std::has_single_bit(static_cast<uint64_t>(n)) ? n : power_above(2 * n)) {
  for (int64_t k = 0; k < padded_ / 2; ++k)
    roots_.push_back(unit(-static_cast<double>(k) / static_cast<double>(padded_)));
  if (padded_ == n_) return;
  Vectors<1> chirp(static_cast<size_t>(padded_));
  for (int64_t k = 0; k < n_; ++k) {
    // k^2 modulo 2 n keeps the angle exact for long transforms.
    const auto square = static_cast<int64_t>(static_cast<__int128>(k) * k % (2 * n_));
    const Complex factor = unit(-static_cast<double>(square) / static_cast<double>(2 * n_));
    chirp_.push_back(factor);
    for (const int64_t place : {k, (padded_ - k) % padded_}) {
      chirp[static_cast<size_t>(place)].re[0] = factor.real();
      chirp[static_cast<size_t>(place)].im[0] = -factor.imag();
    }
  }
  power_of_two(chirp, false);
  for (const Numbers<1>& number : chirp) chirp_dft_.emplace_back(number.re[0], number.im[0]);
}

template <int kLanes>
void Fourier::power_of_two(Vectors<kLanes>& values, bool inverse) const {
  reverse_bits(values);
  const auto n = static_cast<int64_t>(values.size());
  const double sign = inverse ? -1 : 1;
  for (int64_t half = 1; half < n; half *= 2) {
    const int64_t stride = n / (2 * half);
    for (int64_t start = 0; start < n; start += 2 * half) {
      for (int64_t k = 0; k < half; ++k) {
        const Complex& root = roots_[static_cast<size_t>(k * stride)];
        butterfly(values[static_cast<size_t>(start + k)], values[static_cast<size_t>(start + k + half)], root.real(),
                  sign * root.imag());
      }
    }
  }
}

template <int kLanes>
void Fourier::chirp(Vectors<kLanes>& values) const {
  Vectors<kLanes> work(static_cast<size_t>(padded_));
  for (size_t k = 0; k < values.size(); ++k) {
    work[k] = values[k];
    multiply(work[k], chirp_[k]);
  }
  power_of_two(work, false);
  for (size_t k = 0; k < work.size(); ++k) multiply(work[k], chirp_dft_[k]);
  power_of_two(work, true);
  const double scale = 1.0 / static_cast<double>(padded_);
  for (size_t k = 0; k < values.size(); ++k) {
    values[k] = work[k];
    multiply(values[k], chirp_[k] * scale);
  }
}

template <int kLanes>
void Fourier::run(Vectors<kLanes>& values, bool inverse) const {
  if (padded_ == n_) {
    power_of_two(values, inverse);
    return;
  }
  // The inverse is the conjugate of the transform of the conjugate.
  if (inverse) conjugate(values);
  chirp(values);
  if (inverse) conjugate(values);
}

template void Fourier::run(Vectors<1>&, bool) const;
template void Fourier::run(Vectors<8>&, bool) const;

}  // namespace hybridnet::kernels
