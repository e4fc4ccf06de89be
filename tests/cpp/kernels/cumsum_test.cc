// Cumulative sums from both ends, and tests for finite numbers.
#include "kernels/reduce/cumsum.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "kernels/elementwise/finite.h"

namespace hybridnet::kernels {
namespace {

template <class T>
std::vector<T> sums(const std::vector<T>& in, int64_t outer, int64_t length, int64_t inner, bool from_end) {
  std::vector<T> out(in.size());
  cumsum(dtype_of<T>::value, in.data(), outer, length, inner, from_end, dtype_of<T>::value, out.data());
  return out;
}

TEST(Cumsum, SumsFromEitherEnd) {
  const std::vector<float> in = {1, 2, 3, 4, 5, 6};
  EXPECT_EQ(sums(in, 1, 6, 1, false), (std::vector<float>{1, 3, 6, 10, 15, 21}));
  EXPECT_EQ(sums(in, 1, 6, 1, true), (std::vector<float>{21, 20, 18, 15, 11, 6}));
  EXPECT_EQ(sums(in, 2, 3, 1, true), (std::vector<float>{6, 5, 3, 15, 11, 6}));
  EXPECT_EQ(sums(in, 1, 3, 2, false), (std::vector<float>{1, 2, 4, 6, 9, 12}));
  EXPECT_EQ(sums(in, 1, 3, 2, true), (std::vector<float>{9, 12, 8, 10, 5, 6}));
}

TEST(Cumsum, LongRowsKeepTheirDigits) {
  for (const int64_t n : {511, 512, 513, 100000}) {
    const std::vector<float> out = sums(std::vector<float>(static_cast<size_t>(n), 0.1f), 1, n, 1, false);
    EXPECT_FLOAT_EQ(out.back(), static_cast<float>(static_cast<double>(0.1f) * static_cast<double>(n)));
    const std::vector<float> wide = sums(std::vector<float>(static_cast<size_t>(3 * n), 0.1f), 1, 3, n, false);
    EXPECT_FLOAT_EQ(wide[static_cast<size_t>(3 * n - 1)], 0.3f);
  }
}

TEST(Cumsum, IntegersWrapAround) {
  EXPECT_EQ(sums(std::vector<int64_t>{std::numeric_limits<int64_t>::max(), 1}, 1, 2, 1, false).back(),
            std::numeric_limits<int64_t>::min());
  std::vector<int64_t> wide(2);
  const std::vector<int8_t> narrow = {100, 100};
  cumsum(DType::kInt8, narrow.data(), 1, 2, 1, false, DType::kInt64, wide.data());
  EXPECT_EQ(wide, (std::vector<int64_t>{100, 200}));
}

TEST(Finite, FindsInfinitiesAndNaNAnywhere) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const int64_t n : {1, 7, 100, 20000}) {
    std::vector<float> values(static_cast<size_t>(n), std::numeric_limits<float>::max());
    std::vector<float16> halves(values.size(), float16(65504.0f));
    std::vector<double> doubles(values.size(), -std::numeric_limits<double>::max());
    EXPECT_TRUE(all_finite(DType::kFloat32, values.data(), n));
    EXPECT_TRUE(all_finite(DType::kFloat16, halves.data(), n));
    EXPECT_TRUE(all_finite(DType::kFloat64, doubles.data(), n));
    for (const size_t at : {size_t{0}, values.size() / 2, values.size() - 1}) {
      auto bad = values;
      bad[at] = -kInf;
      EXPECT_FALSE(all_finite(DType::kFloat32, bad.data(), n)) << n << " at " << at;
      bad[at] = std::numeric_limits<float>::quiet_NaN();
      EXPECT_FALSE(all_finite(DType::kFloat32, bad.data(), n)) << n << " at " << at;
      auto bad_halves = halves;
      bad_halves[at] = float16(kInf);
      EXPECT_FALSE(all_finite(DType::kFloat16, bad_halves.data(), n)) << n << " at " << at;
      auto bad_doubles = doubles;
      bad_doubles[at] = std::numeric_limits<double>::infinity();
      EXPECT_FALSE(all_finite(DType::kFloat64, bad_doubles.data(), n)) << n << " at " << at;
    }
  }
  EXPECT_TRUE(all_finite(DType::kFloat32, nullptr, 0));
  const int32_t number = std::numeric_limits<int32_t>::max();
  EXPECT_TRUE(all_finite(DType::kInt32, &number, 1));
}

}  // namespace
}  // namespace hybridnet::kernels
