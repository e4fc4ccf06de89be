// Discrete Fourier transforms of one length in double precision.
#pragma once

#include <complex>
#include <cstdint>

#include "storage/temporary.h"

namespace hybridnet::kernels {

// Y[k] = sum over j of X[j] exp(-2 pi i j k / n), without a factor; `inverse` has +2 pi i. Any n of at least 1.
// Cooley and Tukey's radix 2 for powers of two, else a convolution whose length is a power of two (Bluestein, 1970).
//
// Several threads may run one object at once.
class Fourier {
 public:
  using Complex = std::complex<double>;
  explicit Fourier(int64_t n);
  void run(Complex* values, bool inverse) const;

 private:
  void power_of_two(Temporary<Complex>& values, bool inverse) const;
  void chirp(Complex* values) const;

  int64_t n_, padded_;                    // padded_: the power of two that is transformed
  Temporary<Complex> roots_;              // exp(-2 pi i k / padded_) for the first half
  Temporary<Complex> chirp_, chirp_dft_;  // empty for powers of two
};

}  // namespace hybridnet::kernels
