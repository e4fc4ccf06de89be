#include "kernels/bernoulli.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/rng.h"

namespace hybridnet::kernels {
namespace {

TEST(Bernoulli, ComparesTheWordsOfPhilox) {
  const RngKey key{0x123456789abcdef0u, 0xfedcba9876543210u};
  const int64_t begin = (int64_t{1} << 34) - 8;  // the block number crosses 32 bits
  for (int64_t n : {0, 1, 3, 4, 31, 32, 64, 1000, 1003}) {
    std::vector<uint8_t> mask(static_cast<size_t>(n) + 1, 7);
    fill_bernoulli(key, 0.3, begin, n, mask.data());
    for (int64_t i = 0; i < n; ++i) {
      const uint32_t word = philox(key, static_cast<uint64_t>(begin + i) / 4).word[(begin + i) % 4];
      ASSERT_EQ(mask[static_cast<size_t>(i)], word < 0.3 * 4294967296.0) << i << " of " << n;
    }
    ASSERT_EQ(mask.back(), 7) << n;
  }
}

TEST(Bernoulli, KeepsAllAtOneAndNoneAtZero) {
  std::vector<uint8_t> mask(1000);
  fill_bernoulli({1, 2}, 1.0, 0, 1000, mask.data());
  for (uint8_t m : mask) ASSERT_EQ(m, 1);
  fill_bernoulli({1, 2}, 0.0, 0, 1000, mask.data());
  for (uint8_t m : mask) ASSERT_EQ(m, 0);
}

}  // namespace
}  // namespace hybridnet::kernels
