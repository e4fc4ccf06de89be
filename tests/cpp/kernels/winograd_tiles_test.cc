// Winograd's algorithm compared with the direct sum in double: all three products, odd sizes, every padding.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "hybridnet/runtime.h"
#include "hybridnet/threads.h"
#include "kernels/conv/conv_reference.h"
#include "kernels/dnnl/conv_choice.h"
#include "kernels/dnnl/winograd.h"

namespace hybridnet {
namespace {

using kernels::ConvGeometry;
using onednn::ConvKind;
using onednn::Convolution;
using onednn::Winograd;

std::vector<float> random_values(int64_t count, uint32_t seed) {
  std::vector<float> values(static_cast<size_t>(count));
  uint32_t state = seed * 2654435761u + 12345u;
  for (float& v : values) {
    state = state * 1664525u + 1013904223u;
    v = static_cast<float>(state >> 8) / 8388608.0f - 1.0f;
  }
  return values;
}

ConvGeometry geometry(int64_t n, int64_t c, int64_t o, int64_t h, int64_t w, int64_t pad_h, int64_t pad_w) {
  ConvGeometry g;
  g.n = n;
  g.c = c;
  g.o = o;
  g.in = {1, h, w};
  g.out = {1, h + 2 * pad_h - 2, w + 2 * pad_w - 2};
  g.kernel = {1, 3, 3};
  g.pad = {0, pad_h, pad_w};
  g.channels_last = true;
  return g;
}

struct Case {
  ConvGeometry g;
  std::vector<double> x, w, y;
  std::vector<float> x32, w32, y32;

  explicit Case(const ConvGeometry& geometry) : g(geometry) {
    x32 = random_values(g.n * g.c * g.in_size(), 1);
    w32 = random_values(g.o * g.c * 9, 2);
    y32 = random_values(g.n * g.o * g.out_size(), 3);
    x.assign(x32.begin(), x32.end());
    w.assign(w32.begin(), w32.end());
    y.assign(y32.begin(), y32.end());
  }
};

void expect_near(const std::vector<float>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  double largest = 0, error = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    largest = std::max(largest, std::fabs(expected[i]));
    error = std::max(error, std::fabs(expected[i] - static_cast<double>(found[i])));
  }
  EXPECT_LT(error, 5e-6 * largest);
}

std::vector<float> run(const Case& c, const Convolution::Options& options, const float* a, const float* b,
                       int64_t results, const float* bias = nullptr, const float* addend = nullptr,
                       float* out1 = nullptr) {
  Runtime::get();
  DerivedData derived;
  Winograd winograd(c.g, options);
  std::vector<float> out(static_cast<size_t>(results), NAN);
  std::vector<char> workspace(static_cast<size_t>(winograd.workspace_bytes()) + 64);
  char* aligned = workspace.data() + (64 - reinterpret_cast<uintptr_t>(workspace.data()) % 64) % 64;
  for (int repeat = 0; repeat < 2; ++repeat) {
    Convolution::Tensors t;
    t.a = a;
    t.b = {const_cast<float*>(b), nullptr, DType::kFloat32, Format::kPlain, &derived};
    t.c = bias;
    t.d = addend;
    t.out0 = out.data();
    t.out1 = out1;
    t.workspace = aligned;
    winograd.run(t);
  }
  return out;
}

class WinogradTilesTest : public ::testing::TestWithParam<ConvGeometry> {};

TEST_P(WinogradTilesTest, Forward) {
  const Case c(GetParam());
  std::vector<double> expected(c.y.size());
  kernels::conv_forward_reference<double>(c.g, c.x.data(), c.w.data(), nullptr, expected.data());
  for (const bool remember : {false, true}) {
    const Convolution::Options options{.kind = ConvKind::kForward, .remember = remember};
    expect_near(run(c, options, c.x32.data(), c.w32.data(), static_cast<int64_t>(c.y.size())), expected);
  }
}

TEST_P(WinogradTilesTest, BiasSumAndRelu) {
  const Case c(GetParam());
  const std::vector<float> bias = random_values(c.g.o, 4);
  const std::vector<double> wide(bias.begin(), bias.end());
  std::vector<double> expected(c.y.size());
  kernels::conv_forward_reference<double>(c.g, c.x.data(), c.w.data(), wide.data(), expected.data());
  for (size_t i = 0; i < expected.size(); ++i) expected[i] = std::max(expected[i] + c.y[i], 0.0);
  const Convolution::Options options{
      .kind = ConvKind::kForward, .bias = true, .add = true, .activation = {kernels::ActivationKind::kRelu}};
  expect_near(run(c, options, c.x32.data(), c.w32.data(), static_cast<int64_t>(c.y.size()), bias.data(), c.y32.data()),
              expected);
}

TEST_P(WinogradTilesTest, BackwardData) {
  const Case c(GetParam());
  std::vector<double> expected(c.x.size());
  kernels::conv_backward_data_reference<double>(c.g, c.y.data(), c.w.data(), nullptr, expected.data());
  const Convolution::Options options{.kind = ConvKind::kBackwardData};
  expect_near(run(c, options, c.y32.data(), c.w32.data(), static_cast<int64_t>(c.x.size())), expected);
}

TEST_P(WinogradTilesTest, BackwardWeights) {
  const Case c(GetParam());
  std::vector<double> expected(c.w.size()), expected_bias(static_cast<size_t>(c.g.o));
  kernels::conv_backward_weights_reference<double>(c.g, c.x.data(), c.y.data(), expected.data(), expected_bias.data());
  std::vector<float> bias(static_cast<size_t>(c.g.o), NAN);
  const Convolution::Options options{.kind = ConvKind::kBackwardWeights, .bias = true};
  expect_near(
      run(c, options, c.x32.data(), c.y32.data(), static_cast<int64_t>(c.w.size()), nullptr, nullptr, bias.data()),
      expected);
  expect_near(bias, expected_bias);
}

TEST_P(WinogradTilesTest, OnOneCore) {
  const CoreScope scope(1);
  const Case c(GetParam());
  std::vector<double> expected(c.y.size());
  kernels::conv_forward_reference<double>(c.g, c.x.data(), c.w.data(), nullptr, expected.data());
  expect_near(run(c, {.kind = ConvKind::kForward}, c.x32.data(), c.w32.data(), static_cast<int64_t>(c.y.size())),
              expected);
}

INSTANTIATE_TEST_SUITE_P(Sizes, WinogradTilesTest,
                         ::testing::Values(geometry(1, 32, 32, 16, 16, 1, 1), geometry(2, 32, 48, 13, 18, 1, 1),
                                           geometry(3, 48, 32, 14, 11, 0, 2), geometry(1, 64, 32, 29, 30, 2, 0),
                                           geometry(2, 16, 16, 3, 5, 0, 1), geometry(8, 64, 64, 28, 28, 1, 1),
                                           geometry(2, 160, 144, 14, 14, 1, 1)));

TEST(WinogradTiles, NotANumberGoesToItsTileOnly) {
  Case c(geometry(1, 32, 32, 16, 16, 1, 1));
  c.x32[0] = NAN;
  const std::vector<float> y = run(c, {.kind = ConvKind::kForward, .activation = {kernels::ActivationKind::kRelu}},
                                   c.x32.data(), c.w32.data(), static_cast<int64_t>(c.y.size()));
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_FALSE(std::isnan(y[8 * 32]));
}

TEST(ChooseConvolution, TakesLargeTilesForLargeUnitStrideLayersOnly) {
  using onednn::ConvAlgorithm;
  const ConvGeometry good = geometry(8, 64, 64, 28, 28, 1, 1);
  const auto large_tiles = [](const ConvGeometry& g, bool may_round_more = true) {
    return onednn::choose_convolution({g, {}, may_round_more}) == ConvAlgorithm::kWinograd4x4;
  };
  EXPECT_TRUE(large_tiles(good));
  EXPECT_FALSE(large_tiles(good, false));
  const auto with = [&](auto change) {
    ConvGeometry g = good;
    change(g);
    return large_tiles(g);
  };
  EXPECT_FALSE(with([](ConvGeometry& g) { g.stride[1] = 2; }));
  EXPECT_FALSE(with([](ConvGeometry& g) { g.dilate[2] = 2; }));
  EXPECT_FALSE(with([](ConvGeometry& g) { g.kernel[1] = 5; }));
  EXPECT_FALSE(with([](ConvGeometry& g) { g.groups = 2; }));
  EXPECT_FALSE(with([](ConvGeometry& g) { g.channels_last = false; }));
  EXPECT_FALSE(with([](ConvGeometry& g) { g.pad[1] = 3; }));
  EXPECT_FALSE(with([](ConvGeometry& g) { g.c = 24; }));
  EXPECT_FALSE(with([](ConvGeometry& g) { g.n = 0; }));
  EXPECT_FALSE(with([](ConvGeometry& g) { g.n = 1, g.in = g.out = {1, 6, 6}; }));
}

TEST(ChooseConvolution, DependsOnDtypeSizeAndHowOftenWeightsChange) {
  using onednn::ConvAlgorithm;
  const ConvGeometry large = geometry(8, 64, 64, 28, 28, 1, 1), small = geometry(1, 64, 64, 14, 14, 1, 1);
  const auto choice = [](const ConvGeometry& g, const onednn::Convolution::Options& options) {
    return onednn::choose_convolution({g, options});
  };
  EXPECT_EQ(choice(large, {.dtype = DType::kFloat64}), ConvAlgorithm::kReference);
  EXPECT_EQ(choice(large, {.dtype = DType::kBFloat16}), ConvAlgorithm::kDirect);
  ConvGeometry empty = large;
  empty.n = 0;
  EXPECT_EQ(choice(empty, {}), ConvAlgorithm::kReference);
  EXPECT_EQ(choice(large, {}), ConvAlgorithm::kWinograd2x2);
  EXPECT_EQ(choice(small, {}), ConvAlgorithm::kDirect);
  EXPECT_EQ(choice(small, {.remember = true}), ConvAlgorithm::kWinograd2x2);
  EXPECT_EQ(choice(large, {.kind = ConvKind::kBackwardWeights}), ConvAlgorithm::kWinograd2x2);
  EXPECT_EQ(choice(large, {.kind = ConvKind::kBackwardWeights, .bias = true}), ConvAlgorithm::kDirect);
}

}  // namespace
}  // namespace hybridnet
