// Draws of one number from a distribution, on CPUs and devices. They use only the random words of one element, so that
// results depend on nothing else.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/random/rng.h"

namespace hybridnet::kernels {

inline constexpr double kTwoPi = 6.283185307179586;

// log(k!) for k >= 0: exact for small k, else Stirling's series. std::lgamma is not usable, because it writes a global.
inline double log_factorial(double k) {
  static constexpr double kExact[] = {0.0,
                                      0.0,
                                      0.69314718055994531,
                                      1.79175946922805500,
                                      3.17805383034794562,
                                      4.78749174278204599,
                                      6.57925121201010100,
                                      8.52516136106541430,
                                      10.6046029027452502,
                                      12.8018274800814696};
  if (k < 10) return kExact[static_cast<int>(k)];
  const double x = k + 1, inverse = 1.0 / x, square = inverse * inverse;
  return (x - 0.5) * std::log(x) - x + 0.91893853320467274 +
         inverse * (1.0 / 12 - square * (1.0 / 360 - square * (1.0 / 1260 - square / 1680)));
}

// Multiplication of uniforms (Knuth, TAOCP 3.4.1): expected lam + 1 factors.
inline double poisson_small(ElementBits& bits, double lam) {
  const double limit = std::exp(-lam);
  double product = bits.uniform_positive(), count = 0;
  while (product > limit) {
    product *= bits.uniform_positive();
    ++count;
  }
  return count;
}

// Transformed rejection with squeeze, algorithm PTRS of Hoermann, "The transformed rejection method for generating
// Poisson random variables", 1993; for lam >= 10.
inline double poisson_large(ElementBits& bits, double lam) {
  const double log_lam = std::log(lam);
  const double b = 0.931 + 2.53 * std::sqrt(lam), a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), v_r = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    const double u = bits.uniform() - 0.5, v = bits.uniform_positive();
    const double us = 0.5 - std::fabs(u);
    const double k = std::floor((2 * a / us + b) * u + lam + 0.43);
    if (us >= 0.07 && v <= v_r) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    if (std::log(v) + std::log(inverse_alpha) - std::log(a / (us * us) + b) <= -lam + k * log_lam - log_factorial(k))
      return k;
  }
}

inline double draw_normal(ElementBits& bits) {
  // Box and Muller, "A note on the generation of random normal deviates", 1958.
  const double radius = std::sqrt(-2.0 * std::log(bits.uniform_positive()));
  return radius * std::cos(kTwoPi * bits.uniform());
}

inline double draw_exponential(ElementBits& bits) { return -std::log(bits.uniform_positive()); }

inline double draw_gamma(ElementBits& bits, double alpha) {
  // Marsaglia and Tsang, "A simple method for generating gamma variables", 2000; alpha below 1 by the boost of its
  // section 6.
  // The rejection loop would never accept a value for NaN, a negative or an infinite alpha.
  if (!(alpha >= 0)) return std::numeric_limits<double>::quiet_NaN();
  if (std::isinf(alpha)) return alpha;
  double boost = 1.0;
  if (alpha < 1.0) {
    boost = std::pow(bits.uniform_positive(), 1.0 / alpha);
    alpha += 1.0;
  }
  const double d = alpha - 1.0 / 3.0, c = 1.0 / std::sqrt(9.0 * d);
  for (;;) {
    const double z = draw_normal(bits), root = 1.0 + c * z;
    if (root <= 0) continue;
    const double v = root * root * root;
    if (std::log(bits.uniform_positive()) < 0.5 * z * z + d * (1.0 - v + std::log(v))) return d * v * boost;
  }
}

// The i-th smallest of n uniform numbers has a beta distribution. A draw of it decides for about half of the numbers on
// which side of p they are, so that the time grows with log n (Relles: A simple algorithm for generating binomial
// random variables when N is large, 1972).
inline int64_t draw_binomial(ElementBits& bits, int64_t n, double p) {
  constexpr int64_t kFew = 32;
  int64_t successes = 0;
  while (n > kFew && p > 0 && p < 1) {
    const int64_t i = n / 2 + 1;
    const double below = draw_gamma(bits, static_cast<double>(i)),
                 above = draw_gamma(bits, static_cast<double>(n - i + 1));
    const double middle = below / (below + above);
    if (middle <= p) {
      successes += i;
      n -= i;
      p = (p - middle) / (1 - middle);
    } else {
      n = i - 1;
      p /= middle;
    }
  }
  if (p >= 1) return successes + n;
  if (!(p > 0)) return successes;  // true for NaN, too
  for (; n > 0; --n) successes += bits.uniform() < p;
  return successes;
}

inline double draw_poisson(ElementBits& bits, double lam) {
  if (!(lam > 0)) return lam == 0 ? 0.0 : std::numeric_limits<double>::quiet_NaN();
  if (std::isinf(lam)) return lam;
  return lam < 10 ? poisson_small(bits, lam) : poisson_large(bits, lam);
}

inline double draw_negative_binomial(ElementBits& bits, double k, double p) {
  // A Poisson variable whose mean is gamma distributed.
  if (!(k > 0)) return k == 0 ? 0.0 : std::numeric_limits<double>::quiet_NaN();
  return draw_poisson(bits, draw_gamma(bits, k) * (1.0 - p) / p);
}

inline double draw_generalized_negative_binomial(ElementBits& bits, double mu, double alpha) {
  if (alpha == 0) return draw_poisson(bits, mu);
  return draw_poisson(bits, draw_gamma(bits, 1.0 / alpha) * alpha * mu);
}

// ---- the draws of distributions with two parameters; one that has one parameter ignores the second

struct DrawUniform {
  static double draw(ElementBits& bits, double low, double high) { return low + bits.uniform() * (high - low); }
};
struct DrawNormal {
  static double draw(ElementBits& bits, double loc, double scale) { return loc + scale * draw_normal(bits); }
};
struct DrawGamma {
  static double draw(ElementBits& bits, double alpha, double beta) {
    return alpha > 0 ? beta * draw_gamma(bits, alpha) : std::numeric_limits<double>::quiet_NaN();
  }
};
struct DrawExponential {
  static double draw(ElementBits& bits, double lam, double) { return draw_exponential(bits) / lam; }
};
struct DrawPoisson {
  static double draw(ElementBits& bits, double lam, double) { return draw_poisson(bits, lam); }
};
struct DrawNegativeBinomial {
  static double draw(ElementBits& bits, double k, double p) { return draw_negative_binomial(bits, k, p); }
};
struct DrawGeneralizedNegativeBinomial {
  static double draw(ElementBits& bits, double mu, double alpha) {
    return draw_generalized_negative_binomial(bits, mu, alpha);
  }
};

// ---- integers

// The high word of a product of two 64-bit numbers; `low` receives the low one.
inline uint64_t wide_product(uint64_t a, uint64_t b, uint64_t* low) {
  const uint64_t a0 = a & 0xffffffffu, a1 = a >> 32, b0 = b & 0xffffffffu, b1 = b >> 32;
  const uint64_t low_low = a0 * b0, high_low = a1 * b0, low_high = a0 * b1;
  const uint64_t middle = (low_low >> 32) + (high_low & 0xffffffffu) + (low_high & 0xffffffffu);
  *low = a * b;
  return a1 * b1 + (high_low >> 32) + (low_high >> 32) + (middle >> 32);
}

// Returns a number below `range`, where 0 means 2^64: the high word of bits * range, drawn again if it would favor
// some numbers (D. Lemire: "Fast random integer generation in an interval", 2019).
inline uint64_t draw_below(ElementBits& bits, uint64_t range) {
  const uint64_t unfair = range == 0 ? 0 : (uint64_t{0} - range) % range;
  for (;;) {
    const uint64_t first = bits.next(), word = first << 32 | bits.next();
    if (range == 0) return word;
    uint64_t low;
    const uint64_t high = wide_product(word, range, &low);
    if (low >= unfair) return high;
  }
}

}  // namespace hybridnet::kernels
