// Discrete Fourier transforms of one length in double precision.
#pragma once

#include <complex>
#include <cstdint>

#include "storage/temporary.h"

namespace hybridnet::kernels {

// Y[k] = sum over j of X[j] exp(-2 pi i j k / n), without a factor; `inverse` has +2 pi i. Any n of at least 1.
// Cooley and Tukey's radix 2 for powers of two, else a convolution whose length is a power of two (Bluestein, 1970).
// kLanes (1 or 8) vectors are transformed side by side, so that every step is one of SIMD registers.
//
// Several threads may run one object at once.
class Fourier {
 public:
  // Elements of the same position of kLanes vectors.
  template <int kLanes>
  struct Numbers {
    double re[kLanes], im[kLanes];
  };
  template <int kLanes>
  using Vectors = Temporary<Numbers<kLanes>>;

  explicit Fourier(int64_t n);
  int64_t size() const { return n_; }
  template <int kLanes>
  void run(Vectors<kLanes>& values, bool inverse) const;  // n numbers

 private:
  using Complex = std::complex<double>;
  template <int kLanes>
  void power_of_two(Vectors<kLanes>& values, bool inverse) const;
  template <int kLanes>
  void chirp(Vectors<kLanes>& values) const;

  int64_t n_, padded_;                    // padded_: the power of two that is transformed
  Temporary<Complex> roots_;              // exp(-2 pi i k / padded_) for the first half
  Temporary<Complex> chirp_, chirp_dft_;  // empty for powers of two
};

}  // namespace hybridnet::kernels
