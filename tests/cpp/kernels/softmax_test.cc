#include "kernels/norm/softmax.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "hybridnet/threads.h"

namespace hybridnet::kernels {
namespace {

std::vector<float> random_values(int64_t count) {
  std::mt19937 generator(7);
  std::uniform_real_distribution<float> uniform(-20, 20);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& v : values) v = uniform(generator);
  return values;
}

// The definition of softmax, in double.
std::vector<double> expected(const RowShape& s, const std::vector<float>& x, double scale, bool log) {
  std::vector<double> y(x.size());
  for (int64_t r = 0; r < s.rows(); ++r) {
    const int64_t start = r / s.inner * s.length * s.inner + r % s.inner;
    const auto at = [&](int64_t j) { return static_cast<size_t>(start + j * s.inner); };
    double top = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int64_t j = 0; j < s.length; ++j) top = std::max(top, scale * static_cast<double>(x[at(j)]));
    for (int64_t j = 0; j < s.length; ++j) sum += std::exp(scale * static_cast<double>(x[at(j)]) - top);
    for (int64_t j = 0; j < s.length; ++j) {
      const double v = scale * static_cast<double>(x[at(j)]) - top;
      y[at(j)] = log ? v - std::log(sum) : std::exp(v) / sum;
    }
  }
  return y;
}

TEST(Softmax, AgreesWithTheDefinitionForEveryRemainderOfAVector) {
  for (const int64_t length : {1, 2, 3, 7, 15, 16, 17, 31, 33, 100, 1000}) {
    for (const int64_t inner : {1, 3, 16, 300}) {
      for (const bool log : {false, true}) {
        const RowShape s{3, length, inner};
        const auto x = random_values(s.size());
        std::vector<float> y(x.size());
        softmax(s, x.data(), 0.7, log, nullptr, y.data());
        const auto want = expected(s, x, 0.7, log);
        for (size_t i = 0; i < y.size(); ++i)
          ASSERT_NEAR(y[i], want[i], 3e-6 * (1 + std::abs(want[i]))) << length << " " << inner;
      }
    }
  }
}

TEST(Softmax, NaNAndAllMinusInfinityGiveNaN) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  for (const int64_t length : {4, 40}) {
    for (const bool log : {false, true}) {
      for (const float special : {nan, infinity, -infinity}) {
        std::vector<float> x(static_cast<size_t>(length), special == -infinity ? special : 0.0F), y(x.size());
        x[2] = special;
        softmax(RowShape{1, length, 1}, x.data(), 1.0, log, nullptr, y.data());
        if (!log || std::isnan(special)) {
          EXPECT_TRUE(std::isnan(y[2])) << special;
        }
        if (!log && special != infinity) {
          EXPECT_TRUE(std::isnan(y[0])) << special;
        }
      }
    }
  }
}

TEST(Softmax, BitsDoNotDependOnTheNumberOfCores) {
  for (const RowShape s : {RowShape{500, 77, 1}, RowShape{3, 50, 700}}) {
    const auto x = random_values(s.size());
    std::vector<float> one(x.size()), many(x.size());
    {
      const CoreScope scope(1);
      softmax(s, x.data(), 1.0, false, nullptr, one.data());
    }
    const CoreScope scope(4);
    softmax(s, x.data(), 1.0, false, nullptr, many.data());
    EXPECT_EQ(one, many);
  }
}

TEST(Softmax, LengthsAreClippedAndTheRestIsZero) {
  const std::vector<int64_t> lengths{-1, 0, 2, 9};
  const std::vector<float> x(16, 1.0F);
  for (const int64_t inner : {1, 4}) {
    const RowShape s = inner == 1 ? RowShape{4, 4, 1} : RowShape{1, 4, 4};
    std::vector<float> y(16, NAN);
    softmax(s, x.data(), 1.0, false, lengths.data(), y.data());
    for (int64_t r = 0; r < 4; ++r) {
      const int64_t length = std::min<int64_t>(4, std::max<int64_t>(0, lengths[static_cast<size_t>(r)]));
      for (int64_t j = 0; j < 4; ++j) {
        const float want = j < length ? 1.0F / static_cast<float>(length) : 0.0F;
        EXPECT_FLOAT_EQ(y[static_cast<size_t>(inner == 1 ? r * 4 + j : j * 4 + r)], want);
      }
    }
  }
}

}  // namespace
}  // namespace hybridnet::kernels
