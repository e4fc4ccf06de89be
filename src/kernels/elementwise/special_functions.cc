#include "kernels/elementwise/special_functions.h"

#include "kernels/functors/special_functions.h"

namespace hybridnet::kernels {

double erfinv(double x) { return scalar::erfinv(x); }
double log_gamma(double x) { return scalar::log_gamma(x); }
double polygamma(int order, double x) { return scalar::polygamma(order, x); }

}  // namespace hybridnet::kernels
