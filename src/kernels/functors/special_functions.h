// Scalar special functions that the C++ library lacks, in float64: the definitions. The library calls them through
// kernels/elementwise/special_functions.h, which compiles them once, for the baseline instruction set; kernels of
// devices include this text.
#pragma once

#include <cmath>
#include <limits>

namespace hybridnet::kernels::scalar {

template <int N>
inline double polynomial(const double (&c)[N], double x) {  // c[0] + c[1] x + ...
  double y = c[N - 1];
  for (int i = N - 2; i >= 0; --i) y = y * x + c[i];
  return y;
}

// B(2k) of the asymptotic expansions, k = 1...
inline constexpr double kBernoulli[] = {1.0 / 6,       -1.0 / 30, 1.0 / 42,      -1.0 / 30,     5.0 / 66,
                                        -691.0 / 2730, 7.0 / 6,   -3617.0 / 510, 43867.0 / 798, -174611.0 / 330};
inline constexpr double kAsymptotic =
    20;  // from here on ten terms give float64 precision for the orders that gradients need

// psi(x) ~ log x - 1/(2x) - sum B(2k) / (2k x^2k); Abramowitz and Stegun 6.3.18.
inline double digamma_large(double x) {
  const double z = 1 / (x * x);
  double power = z, sum = 0;
  for (int k = 1; k <= 10; ++k, power *= z) sum += kBernoulli[k - 1] / (2 * k) * power;
  return std::log(x) - 0.5 / x - sum;
}

// psi_n(x) ~ (-1)^(n+1) [ (n-1)!/x^n + n!/(2 x^(n+1)) + sum B(2k) (2k+n-1)! / ((2k)! x^(2k+n)) ]; A&S 6.4.11.
inline double polygamma_large(int n, double x) {
  const double lead = std::tgamma(n) / std::pow(x, n);
  double sum = lead + std::tgamma(n + 1) / (2 * std::pow(x, n + 1));
  double factor = lead;  // (2k+n-1)! / ((2k)! x^(2k+n)), by recurrence from k = 0
  for (int k = 1; k <= 10; ++k) {
    factor *= (2.0 * k + n - 1) * (2.0 * k + n - 2) / ((2.0 * k) * (2.0 * k - 1) * x * x);
    sum += kBernoulli[k - 1] * factor;
  }
  return n % 2 ? sum : -sum;
}

// Wichura, Algorithm AS 241 (PPND16): quantile of the normal distribution; erfinv(x) is the quantile of (x + 1) / 2,
// divided by sqrt(2).
inline double erfinv(double x) {
  if (!(std::fabs(x) <= 1)) return std::numeric_limits<double>::quiet_NaN();
  if (std::fabs(x) == 1) return std::copysign(std::numeric_limits<double>::infinity(), x);
  constexpr double kSqrtHalf = 0.70710678118654752440;
  const double q = 0.5 * x;
  if (std::fabs(q) <= 0.425) {
    constexpr double a[] = {3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
                            1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
                            3.3430575583588128105e4, 2.5090809287301226727e3};
    constexpr double b[] = {1.0,
                            4.2313330701600911252e1,
                            6.8718700749205790830e2,
                            5.3941960214247511077e3,
                            2.1213794301586595867e4,
                            3.9307895800092710610e4,
                            2.8729085735721942674e4,
                            5.2264952788528545610e3};
    const double r = 0.180625 - q * q;
    return q * polynomial(a, r) / polynomial(b, r) * kSqrtHalf;
  }
  double r = std::sqrt(-std::log(0.5 * (1 - std::fabs(x))));
  double y;
  if (r <= 5) {
    constexpr double c[] = {1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
                            3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
                            2.27238449892691845833e-2, 7.74545014278341407640e-4};
    constexpr double d[] = {1.0,
                            2.05319162663775882187e0,
                            1.67638483018380384940e0,
                            6.89767334985100004550e-1,
                            1.48103976427480074590e-1,
                            1.51986665636164571966e-2,
                            5.47593808499534494600e-4,
                            1.05075007164441684324e-9};
    r -= 1.6;
    y = polynomial(c, r) / polynomial(d, r);
  } else {
    constexpr double e[] = {6.65790464350110377720e0,  5.46378491116411436990e0,  1.78482653991729133580e0,
                            2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
                            2.71155556874348757815e-5, 2.01033439929228813265e-7};
    constexpr double f[] = {1.0,
                            5.99832206555887937690e-1,
                            1.36929880922735805310e-1,
                            1.48753612908506148525e-2,
                            7.86869131145613259100e-4,
                            1.84631831751005468180e-5,
                            1.42151175831644588870e-7,
                            2.04426310338993978564e-15};
    r -= 5;
    y = polynomial(e, r) / polynomial(f, r);
  }
  return std::copysign(y * kSqrtHalf, x);
}

// Thread-safe, unlike C's lgamma, which writes a global sign.
inline double log_gamma(double x) {
#ifdef __CUDACC_RTC__
  return lgamma(x);
#else
  int sign;
  return lgamma_r(x, &sign);
#endif
}

// psi_n(x) = psi_n(x + 1) - (-1)^n n! / x^(n+1), until the expansion holds; the steps grow with -x.
inline double polygamma_by_steps(int order, double x) {
  double shift = 0;
  const double factorial = std::tgamma(order + 1);
  const double bound = kAsymptotic + order;
  for (; x < bound; x += 1) shift += order == 0 ? 1 / x : factorial / std::pow(x, order + 1);
  if (order == 0) return digamma_large(x) - shift;
  return polygamma_large(order, x) + (order % 2 ? shift : -shift);
}

inline double polygamma(int order, double x) {
  if (x <= 0 && x == std::floor(x)) return std::numeric_limits<double>::quiet_NaN();
  if (std::isnan(x) || std::isinf(x)) {
    if (x > 0) return order == 0 ? x : 0;
    return std::numeric_limits<double>::quiet_NaN();
  }
  constexpr double kPi = 3.14159265358979323846;
  if (order == 0 && x < -kAsymptotic) {  // reflection
    return polygamma_by_steps(0, 1 - x) - kPi / std::tan(kPi * (x - std::floor(x)));
  }
  if (order == 1 && x < -kAsymptotic) {
    const double s = std::sin(kPi * (x - std::floor(x)));
    return kPi * kPi / (s * s) - polygamma_by_steps(1, 1 - x);
  }
  return polygamma_by_steps(order, x);
}

}  // namespace hybridnet::kernels::scalar
