// The draws of kernels/functors/samplers.h for operators.
#pragma once

#include "kernels/functors/samplers.h"

namespace hybridnet::ops {

using kernels::draw_binomial, kernels::draw_exponential, kernels::draw_gamma,
    kernels::draw_generalized_negative_binomial, kernels::draw_negative_binomial, kernels::draw_normal,
    kernels::draw_poisson;

}  // namespace hybridnet::ops
