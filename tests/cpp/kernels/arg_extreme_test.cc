// argmax and argmin compared with plain loops: every layout, ties, NaN, all dtypes, and lengths that are split.
#include "kernels/reduce/arg_extreme.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "kernels/elementwise/convert.h"

namespace hybridnet::kernels {
namespace {

struct Layout {
  int64_t outer, length, inner;
};

// The first position of the extreme, or of the first NaN if there is one.
std::vector<int64_t> expected(Extreme extreme, const std::vector<float>& in, Layout l) {
  std::vector<int64_t> out;
  for (int64_t o = 0; o < l.outer; ++o) {
    for (int64_t k = 0; k < l.inner; ++k) {
      const auto at = [&](int64_t i) { return in[static_cast<size_t>((o * l.length + i) * l.inner + k)]; };
      int64_t best = 0;
      for (int64_t i = 1; i < l.length && !std::isnan(at(best)); ++i) {
        if (std::isnan(at(i)) || (extreme == Extreme::kMax ? at(i) > at(best) : at(i) < at(best))) best = i;
      }
      out.push_back(best);
    }
  }
  return out;
}

std::vector<float> small_numbers(int64_t n, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_int_distribution<int> uniform(0, 100);
  std::vector<float> v(static_cast<size_t>(n));
  for (float& x : v) x = static_cast<float>(uniform(generator));
  return v;
}

std::vector<int64_t> found(Extreme extreme, DType dtype, const std::vector<float>& in, Layout l) {
  std::vector<char> converted(in.size() * static_cast<size_t>(dtype_size(dtype)) + 1);
  convert(DType::kFloat32, in.data(), dtype, converted.data(), static_cast<int64_t>(in.size()));
  std::vector<int64_t> out(static_cast<size_t>(l.outer * l.inner));
  arg_extreme(extreme, dtype, converted.data(), l.outer, l.length, l.inner, DType::kInt64, out.data());
  return out;
}

class ArgExtreme : public testing::TestWithParam<Layout> {};

TEST_P(ArgExtreme, AgreesWithPlainLoopsForEveryDtype) {
  const Layout l = GetParam();
  const std::vector<float> in = small_numbers(l.outer * l.length * l.inner, 3);
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBFloat16, DType::kInt8,
                            DType::kUInt8, DType::kInt32, DType::kInt64}) {
    for (const Extreme extreme : {Extreme::kMax, Extreme::kMin}) {
      EXPECT_EQ(found(extreme, dtype, in, l), expected(extreme, in, l)) << dtype_name(dtype);
    }
  }
}

TEST_P(ArgExtreme, FindsTheFirstNaN) {
  const Layout l = GetParam();
  std::vector<float> in = small_numbers(l.outer * l.length * l.inner, 5);
  for (size_t i = 1; i < in.size(); i += 7) in[i] = std::numeric_limits<float>::quiet_NaN();
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16}) {
    EXPECT_EQ(found(Extreme::kMax, dtype, in, l), expected(Extreme::kMax, in, l)) << dtype_name(dtype);
    EXPECT_EQ(found(Extreme::kMin, dtype, in, l), expected(Extreme::kMin, in, l)) << dtype_name(dtype);
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, ArgExtreme,
                         testing::Values(Layout{1, 1, 1}, Layout{1, 7, 1}, Layout{3, 16, 1}, Layout{5, 33, 1},
                                         Layout{2, 5000, 1}, Layout{1, 200000, 1}, Layout{1, 4, 3}, Layout{3, 4, 16},
                                         Layout{2, 9, 513}, Layout{2, 1000, 2}, Layout{1, 70000, 3},
                                         Layout{100, 3, 40}));

TEST(ArgExtremeLimits, InfinitiesAreFoundAndNothingIsNotRead) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const Layout row{1, 4, 1};
  EXPECT_EQ(found(Extreme::kMax, DType::kFloat32, {-kInf, -kInf, -kInf, -kInf}, row), std::vector<int64_t>{0});
  EXPECT_EQ(found(Extreme::kMin, DType::kFloat32, {kInf, 3, -kInf, -kInf}, row), std::vector<int64_t>{2});
  arg_extreme(Extreme::kMax, DType::kFloat32, nullptr, 0, 4, 3, DType::kInt64, nullptr);
  arg_extreme(Extreme::kMax, DType::kFloat32, nullptr, 2, 4, 0, DType::kInt64, nullptr);
}

}  // namespace
}  // namespace hybridnet::kernels
