// Functions that draw one number from a distribution. All use only the random words of one element, so results depend
// on nothing else.
#pragma once

#include "kernels/random/rng.h"

namespace hybridnet::ops {

double draw_normal(kernels::ElementBits& bits);                          // mean 0, deviation 1
double draw_exponential(kernels::ElementBits& bits);                     // mean 1
double draw_gamma(kernels::ElementBits& bits, double alpha);             // shape alpha > 0, scale 1
double draw_poisson(kernels::ElementBits& bits, double lam);             // mean lam >= 0
int64_t draw_binomial(kernels::ElementBits& bits, int64_t n, double p);  // successes of n trials of probability p
double draw_negative_binomial(kernels::ElementBits& bits, double k, double p);
double draw_generalized_negative_binomial(kernels::ElementBits& bits, double mu, double alpha);

}  // namespace hybridnet::ops
