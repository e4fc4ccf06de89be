// Sums over short spans of memory inside kernels: several accumulators in a fixed order, which the compiler can
// vectorize without changing the result.
#pragma once

#include <cstdint>

namespace hybridnet::kernels {

// f(0) + f(1) + ... + f(n - 1), summed in float64.
template <typename F>
double sum_of(int64_t n, F&& f) {
  constexpr int kLanes = 8;
  double lane[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int l = 0; l < kLanes; ++l) lane[l] += static_cast<double>(f(i + l));
  for (int l = 0; i < n; ++i, ++l) lane[l] += static_cast<double>(f(i));
  for (int width = kLanes / 2; width > 0; width /= 2)
    for (int l = 0; l < width; ++l) lane[l] += lane[l + width];
  return lane[0];
}

}  // namespace hybridnet::kernels
