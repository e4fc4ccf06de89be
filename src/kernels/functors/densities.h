// Logarithms of the densities of distributions, on CPUs and devices; one that has one parameter ignores the second.
#pragma once

#include <cmath>

namespace hybridnet::kernels {

struct DensityOfUniform {
  static double log_density(double, double low, double high) { return -std::log(high - low); }
};
struct DensityOfNormal {
  static double log_density(double x, double mu, double sigma) {
    constexpr double kLogRootTwoPi = 0.91893853320467274178;
    const double z = (x - mu) / sigma;
    return -0.5 * z * z - std::log(sigma) - kLogRootTwoPi;
  }
};
struct DensityOfGamma {
  static double log_density(double x, double alpha, double beta) {
    return alpha * std::log(beta) + (alpha - 1) * std::log(x) - beta * x - std::lgamma(alpha);
  }
};
struct DensityOfExponential {
  static double log_density(double x, double lam, double) { return std::log(lam) - lam * x; }
};
struct DensityOfPoisson {
  static double log_density(double x, double lam, double) { return x * std::log(lam) - std::lgamma(x + 1) - lam; }
};
struct DensityOfNegativeBinomial {
  static double log_density(double x, double k, double p) {
    return std::lgamma(x + k) - std::lgamma(x + 1) - std::lgamma(k) + k * std::log(p) + x * std::log1p(-p);
  }
};
struct DensityOfGeneralizedNegativeBinomial {
  static double log_density(double x, double mu, double alpha) {
    return DensityOfNegativeBinomial::log_density(x, 1 / alpha, 1 / (mu * alpha + 1));
  }
};

}  // namespace hybridnet::kernels
