// Elementwise sums, over rows, of numbers stored as logarithms; -infinity is the logarithm of 0.
#pragma once

#include <cstdint>

namespace hybridnet::kernels {

// out = log(e^a + e^b + e^(c + gate)) + add
void log_sum3(const double* a, const double* b, const double* c, const double* gate, const double* add, int64_t n,
              double* out);

// out = e^(a - shift); out may alias a.
void exp_row(const double* a, double shift, int64_t n, double* out);

}  // namespace hybridnet::kernels
