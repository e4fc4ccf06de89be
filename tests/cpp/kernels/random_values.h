// Random operands for tests.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace hybridnet::kernels {

// Random numbers in [-1, 1).
template <typename T = float>
std::vector<T> random_values(int64_t size, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<T> values(static_cast<size_t>(size));
  for (T& v : values) v = static_cast<T>(uniform(generator));
  return values;
}

}  // namespace hybridnet::kernels
