#include "kernels/random/bernoulli.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/random/rng.h"

namespace hybridnet::kernels {
namespace {

// The 16 bits in place i % 8 of Philox block i / 8.
uint32_t bits(RngKey key, uint64_t i) { return philox(key, i / 8).word[i % 8 / 2] >> (i % 2 * 16) & 0xffff; }

bool is_kept(RngKey key, double keep, uint64_t i) {
  const uint32_t number = bits(key, i) << 16 | bits({~key.seed, key.stream}, i);
  return number < keep * 4294967296.0;
}

TEST(Bernoulli, ComparesTheNumbersOfPhilox) {
  const RngKey key{0x123456789abcdef0u, 0xfedcba9876543210u};
  const int64_t block = (int64_t{1} << 35) - 16;  // the block number crosses 32 bits
  for (const int64_t begin : {block, block + 3, int64_t{0}, int64_t{61}}) {
    for (int64_t n : {0, 1, 3, 4, 31, 32, 64, 127, 1000, 1003}) {
      std::vector<uint8_t> mask(static_cast<size_t>(n) + 1, 7);
      fill_bernoulli(key, 0.3, begin, n, mask.data());
      for (int64_t i = 0; i < n; ++i)
        ASSERT_EQ(mask[static_cast<size_t>(i)], is_kept(key, 0.3, static_cast<uint64_t>(begin + i)))
            << i << " of " << n;
      ASSERT_EQ(mask.back(), 7) << n;
    }
  }
}

TEST(Bernoulli, ProbabilitiesAreExactTo32Bits) {
  const RngKey key{3, 4};
  const int64_t n = int64_t{1} << 22;
  std::vector<uint8_t> mask(static_cast<size_t>(n));
  for (const double keep : {0x1p-17, 0.5 + 0x1p-20, 1 - 0x1p-18}) {
    fill_bernoulli(key, keep, 0, n, mask.data());
    int64_t ties = 0;
    for (int64_t i = 0; i < n; ++i) {
      if (bits(key, static_cast<uint64_t>(i)) != static_cast<uint32_t>(keep * 65536)) continue;
      ++ties;
      ASSERT_EQ(mask[static_cast<size_t>(i)], is_kept(key, keep, static_cast<uint64_t>(i))) << i;
    }
    EXPECT_GT(ties, 30);  // 64 of them are expected
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
