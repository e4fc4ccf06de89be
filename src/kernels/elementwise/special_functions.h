// Scalar special functions that the C++ library lacks, in float64.
#pragma once

namespace hybridnet::kernels {

double erfinv(double x);                // NaN outside [-1, 1], infinite at the ends
double log_gamma(double x);             // log |gamma(x)|; thread-safe, unlike lgamma, which writes a global sign
double polygamma(int order, double x);  // order-th derivative of digamma, order >= 0; NaN at 0, -1, -2, ...

}  // namespace hybridnet::kernels
