#include "kernels/index/row_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "hybridnet/runtime.h"

namespace hybridnet::kernels {
namespace {

// The documented order, by a stable sort: NaN is largest, equal values keep their order.
template <typename T>
std::vector<int64_t> stable_order(const std::vector<T>& row, bool ascending) {
  std::vector<int64_t> order(row.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  const auto less = [](T a, T b) {
    const double x = static_cast<double>(a), y = static_cast<double>(b);
    return x < y || (std::isnan(y) && !std::isnan(x));
  };
  std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
    const T a = row[static_cast<size_t>(i)], b = row[static_cast<size_t>(j)];
    return ascending ? less(a, b) : less(b, a);
  });
  return order;
}

template <typename T>
std::vector<T> random_row(size_t n, uint32_t seed) {
  std::mt19937 bits(seed);
  std::vector<T> row(n);
  for (T& v : row) {
    if constexpr (std::is_same_v<T, bool>)
      v = bits() % 2;
    else if constexpr (std::is_integral_v<T>)
      v = static_cast<T>(bits());
    else
      v = static_cast<T>(static_cast<float>(static_cast<int32_t>(bits() % 2000) - 1000) / 64.0f);
  }
  return row;
}

template <typename T>
void expect_stable_order(const std::vector<T>& row) {
  RowOrder finder;
  const int64_t n = static_cast<int64_t>(row.size());
  for (bool ascending : {true, false}) {
    const std::vector<int64_t> expected = stable_order(row, ascending);
    for (int64_t k : {int64_t{1}, n / 20, n / 2, n}) {
      const int64_t* found = finder.find(row.data(), n, 1, k, ascending);
      EXPECT_TRUE(std::equal(found, found + k, expected.begin()))
          << "n " << n << " k " << k << " ascending " << ascending;
    }
  }
}

template <typename T>
class RowOrderOf : public ::testing::Test {};
using Types = ::testing::Types<float, double, float16, bfloat16, uint8_t, int8_t, int32_t, int64_t>;
TYPED_TEST_SUITE(RowOrderOf, Types);

TYPED_TEST(RowOrderOf, AgreesWithAStableSortForFewAndManyElements) {
  Runtime::get();  // owns the storage
  for (size_t n : {1, 2, 17, 399, 400, 3000}) expect_stable_order(random_row<TypeParam>(n, static_cast<uint32_t>(n)));
}

TEST(RowOrder, CountsNanAsLargestAndZeroesAsEqual) {
  Runtime::get();  // owns the storage
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  std::vector<float> row = {0.0f, nan, -0.0f, inf, -inf, 1e-42f, -1e-42f, -nan, 3.0f, 0.0f};
  expect_stable_order(row);
  for (int i = 0; i < 6; ++i) row.insert(row.end(), row.begin(), row.end());  // long enough for counting sorts
  expect_stable_order(row);
}

TEST(RowOrder, ReadsElementsThatLieApart) {
  Runtime::get();  // owns the storage
  const std::vector<int32_t> data = {5, 0, 3, 0, 4, 0};
  RowOrder finder;
  const int64_t* found = finder.find(data.data(), 3, 2, 3, true);
  EXPECT_EQ(std::vector<int64_t>(found, found + 3), (std::vector<int64_t>{1, 2, 0}));
}

TEST(RowOrder, OrdersBools) {
  Runtime::get();  // owns the storage
  const bool data[] = {true, false, true, false};
  RowOrder finder;
  const int64_t* found = finder.find(data, 4, 1, 4, false);
  EXPECT_EQ(std::vector<int64_t>(found, found + 4), (std::vector<int64_t>{0, 2, 1, 3}));
}

}  // namespace
}  // namespace hybridnet::kernels
