// The distributions with three operators: _random_x (numbers as parameters), _random_x_like (shape of a tensor) and
// _sample_x (a tensor of parameters).
#pragma once

#include <algorithm>
#include <array>
#include <limits>

#include "hybridnet/error.h"
#include "hybridnet/params.h"
#include "ops/random/samplers.h"

namespace hybridnet::ops {

struct ParameterInfo {
  const char* name;         // x in _random_x
  const char* tensor_name;  // x in _sample_x
  double default_value;
  const char* doc;
};

[[noreturn]] inline void bad_parameter(const char* name, const char* expected, double given) {
  throw ParamError({.input = name, .expected = expected, .given = AttrValue(given).str()});
}

struct Uniform : kernels::DrawUniform {
  static constexpr const char* kDraw = "DrawUniform";
  static constexpr const char* kName = "uniform";
  static constexpr const char* kDoc = "Uniformly distributed numbers in [low, high).";
  static constexpr std::array<ParameterInfo, 2> kParameters{
      {{"low", "low", 0.0, "Lower bound, inclusive."}, {"high", "high", 1.0, "Upper bound, exclusive."}}};
  static void check(double low, double high) {
    if (!(low <= high)) bad_parameter("high", "a bound that is not below low", high);
  }
};

struct Normal : kernels::DrawNormal {
  static constexpr const char* kDraw = "DrawNormal";
  static constexpr const char* kName = "normal";
  static constexpr const char* kDoc = "Normally distributed numbers.";
  static constexpr std::array<ParameterInfo, 2> kParameters{
      {{"loc", "mu", 0.0, "Mean."}, {"scale", "sigma", 1.0, "Standard deviation, not negative."}}};
  static void check(double, double scale) {
    if (!(scale >= 0)) bad_parameter("scale", "a deviation that is not negative", scale);
  }
};

struct Gamma : kernels::DrawGamma {
  static constexpr const char* kDraw = "DrawGamma";
  static constexpr const char* kName = "gamma";
  static constexpr const char* kDoc = "Gamma distributed numbers.";
  static constexpr std::array<ParameterInfo, 2> kParameters{
      {{"alpha", "alpha", 1.0, "Shape, positive."}, {"beta", "beta", 1.0, "Scale, positive."}}};
  static void check(double alpha, double beta) {
    if (!(alpha > 0)) bad_parameter("alpha", "a positive number", alpha);
    if (!(beta > 0)) bad_parameter("beta", "a positive number", beta);
  }
};

struct Exponential : kernels::DrawExponential {
  static constexpr const char* kDraw = "DrawExponential";
  static constexpr const char* kName = "exponential";
  static constexpr const char* kDoc = "Exponentially distributed numbers.";
  static constexpr std::array<ParameterInfo, 1> kParameters{
      {{"lam", "lam", 1.0, "Rate, positive: one over the mean."}}};
  static void check(double lam, double) {
    if (!(lam > 0)) bad_parameter("lam", "a positive number", lam);
  }
};

struct Poisson : kernels::DrawPoisson {
  static constexpr const char* kDraw = "DrawPoisson";
  static constexpr const char* kName = "poisson";
  static constexpr const char* kDoc = "Poisson distributed integers, as floating values.";
  static constexpr std::array<ParameterInfo, 1> kParameters{{{"lam", "lam", 1.0, "Mean, not negative."}}};
  static void check(double lam, double) {
    if (!(lam >= 0)) bad_parameter("lam", "a number that is not negative", lam);
  }
};

struct NegativeBinomial : kernels::DrawNegativeBinomial {
  static constexpr const char* kDraw = "DrawNegativeBinomial";
  static constexpr const char* kName = "negative_binomial";
  static constexpr const char* kDoc = "Number of failures before k successes of probability p, as floating values.";
  static constexpr std::array<ParameterInfo, 2> kParameters{
      {{"k", "k", 1.0, "Number of successes, not negative."}, {"p", "p", 1.0, "Probability of a success, in (0, 1]."}}};
  static void check(double k, double p) {
    if (!(k >= 0)) bad_parameter("k", "a number that is not negative", k);
    if (!(p > 0 && p <= 1)) bad_parameter("p", "a probability in (0, 1]", p);
  }
};

struct GeneralizedNegativeBinomial : kernels::DrawGeneralizedNegativeBinomial {
  static constexpr const char* kDraw = "DrawGeneralizedNegativeBinomial";
  static constexpr const char* kName = "generalized_negative_binomial";
  static constexpr const char* kDoc = "Negative binomial integers by mean and dispersion, as floating values.";
  static constexpr std::array<ParameterInfo, 2> kParameters{
      {{"mu", "mu", 1.0, "Mean, not negative."},
       {"alpha", "alpha", 1.0, "Dispersion, not negative; 0 gives Poisson."}}};
  static void check(double mu, double alpha) {
    if (!(mu >= 0)) bad_parameter("mu", "a number that is not negative", mu);
    if (!(alpha >= 0)) bad_parameter("alpha", "a number that is not negative", alpha);
  }
};

}  // namespace hybridnet::ops
