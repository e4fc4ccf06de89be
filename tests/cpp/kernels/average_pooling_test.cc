// Average pooling through oneDNN compared with our own in double, over random geometries.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "hybridnet/runtime.h"
#include "kernels/dnnl/pooling.h"

namespace hybridnet::onednn {
namespace {

using kernels::PoolGeometry;
using kernels::PoolType;

class Geometries {
 public:
  PoolGeometry next() {
    PoolGeometry g;
    g.type = PoolType::kAvg;
    g.count_pad = draw(0, 1) == 1;
    g.channels_last = draw(0, 1) == 1;
    g.n = draw(1, 3);
    g.c = draw(1, 40);
    for (size_t k = static_cast<size_t>(draw(0, 2)); k < 3; ++k) {
      g.in[k] = draw(1, 9);
      g.kernel[k] = draw(1, 4);
      g.stride[k] = draw(1, 3);
      g.pad[k] = draw(0, 2);
      const int64_t room = std::max<int64_t>(g.in[k] + 2 * g.pad[k] - g.kernel[k], 0);
      const bool full = draw(0, 1) == 1;  // a last window that extends beyond the padding
      g.out[k] = 1 + (full ? (room + g.stride[k] - 1) / g.stride[k] : room / g.stride[k]);
    }
    return g;
  }
  template <typename T>
  std::vector<T> values(int64_t n) {
    std::vector<T> all(static_cast<size_t>(n));
    for (T& v : all) v = static_cast<T>(draw(-64, 64)) / 16;
    return all;
  }

 private:
  int64_t draw(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(engine_); }
  std::mt19937 engine_{3};
};

template <typename To, typename From>
std::vector<To> converted(const std::vector<From>& values) {
  return {values.begin(), values.end()};
}

TEST(AveragePooling, EqualsOurOwnForwardAndGradient) {
  Runtime::get();
  Geometries geometries;
  int taken = 0;
  for (int round = 0; round < 400; ++round) {
    const PoolGeometry g = geometries.next();
    if (!AveragePooling::pays(g)) continue;
    ++taken;
    const int64_t inputs = g.n * g.c * g.in_size(), outputs = g.n * g.c * g.out_size();
    for (const bool gradient : {false, true}) {
      const auto from = geometries.values<float>(gradient ? outputs : inputs);
      std::vector<float> to(static_cast<size_t>(gradient ? inputs : outputs), NAN);
      std::vector<double> expected(to.size());
      const std::vector<double> exact = converted<double>(from);
      gradient ? kernels::sum_pool_backward<double>(g, exact.data(), expected.data())
               : kernels::pool_forward<double>(g, exact.data(), expected.data());
      AveragePooling pooling(g, gradient);
      const OwnedBlock workspace(pooling.workspace_bytes());
      pooling.run(from.data(), to.data(), workspace.data());
      for (size_t i = 0; i < to.size(); ++i) ASSERT_NEAR(to[i], expected[i], 1e-5) << "round " << round;
    }
  }
  EXPECT_GT(taken, 50);
}

// For such windows oneDNN divides by the whole window.
TEST(AveragePooling, LeavesWindowsBehindThePaddingThatCountIt) {
  PoolGeometry g;
  g.type = PoolType::kAvg;
  g.channels_last = true;
  g.n = 1;
  g.c = 8;
  g.in = {1, 1, 4};
  g.kernel = {1, 1, 3};
  g.stride = {1, 1, 2};
  g.out = {1, 1, 2};
  EXPECT_FALSE(AveragePooling::pays(g));
  g.count_pad = false;
  EXPECT_TRUE(AveragePooling::pays(g));
  g.type = PoolType::kMax;
  EXPECT_FALSE(AveragePooling::pays(g));
}

}  // namespace
}  // namespace hybridnet::onednn
