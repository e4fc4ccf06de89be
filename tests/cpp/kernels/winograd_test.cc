#include "kernels/conv/winograd.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/conv/conv_reference.h"
#include "kernels/random_values.h"

namespace hybridnet::kernels {
namespace {

ConvGeometry geometry(int64_t n, int64_t c, int64_t o, int64_t height, int64_t width, int64_t pad) {
  ConvGeometry g;
  g.n = n;
  g.c = c;
  g.o = o;
  g.in = {1, height, width};
  g.kernel = {1, 3, 3};
  g.pad = {0, pad, pad};
  g.out = {1, height + 2 * pad - 2, width + 2 * pad - 2};
  g.channels_last = true;
  return g;
}

std::vector<float> winograd(const ConvGeometry& g, const std::vector<float>& x, const std::vector<float>& w,
                            const WinogradEnd& end) {
  std::vector<float> packed(static_cast<size_t>(winograd_weight_bytes(g)) / sizeof(float));
  std::vector<float> workspace(static_cast<size_t>(winograd_workspace_bytes(g)) / sizeof(float));
  std::vector<float> y(static_cast<size_t>(g.n * g.o * g.out_size()), NAN);
  winograd_pack(g, w.data(), false, packed.data());
  winograd_forward(g, x.data(), packed.data(), end, y.data(), workspace.data());
  return y;
}

void expect_equals_sum(const ConvGeometry& g, bool with_end) {
  ASSERT_TRUE(winograd_applies(g));
  const auto x = random_values(g.n * g.c * g.in_size(), 1), w = random_values(g.o * g.c * 9, 2),
             bias = random_values(g.o, 3);
  const auto addend = random_values(g.n * g.o * g.out_size(), 4);
  std::vector<float> expected(addend.size());
  conv_forward_reference(g, x.data(), w.data(), with_end ? bias.data() : nullptr, expected.data());
  if (with_end)
    for (size_t i = 0; i < expected.size(); ++i) expected[i] = std::max(expected[i] + addend[i], 0.0F);
  const WinogradEnd end = with_end ? WinogradEnd{bias.data(), addend.data(), true} : WinogradEnd{};
  const auto y = winograd(g, x, w, end);
  const float tolerance = 2e-6F * static_cast<float>(g.c);
  for (size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(y[i], expected[i], tolerance) << "element " << i;
}

TEST(Winograd, EqualsTheSumForEvenAndOddSizes) {
  expect_equals_sum(geometry(1, 32, 64, 8, 8, 1), false);
  expect_equals_sum(geometry(2, 48, 80, 9, 7, 1), true);
  expect_equals_sum(geometry(3, 32, 32, 5, 13, 2), true);
  expect_equals_sum(geometry(1, 64, 48, 6, 7, 0), false);
}

TEST(Winograd, EqualsTheSumWhenTheImageTakesSeveralGroups) { expect_equals_sum(geometry(3, 512, 32, 16, 17, 1), true); }

TEST(Winograd, TakesWeightsWithChannelsLast) {
  ConvGeometry g = geometry(1, 32, 32, 6, 6, 1);
  g.weights_last = true;
  expect_equals_sum(g, false);
}

void expect_gradient_equals_sum(ConvGeometry g) {
  const ConvGeometry m = mirrored(g);
  ASSERT_TRUE(winograd_applies(m));
  const auto dy = random_values(g.n * g.o * g.out_size(), 1), w = random_values(g.o * g.c * 9, 2);
  std::vector<float> expected(static_cast<size_t>(g.n * g.c * g.in_size())), dx(expected.size(), NAN);
  conv_backward_data_reference<float>(g, dy.data(), w.data(), nullptr, expected.data());
  std::vector<float> packed(static_cast<size_t>(winograd_weight_bytes(m)) / sizeof(float));
  std::vector<float> workspace(static_cast<size_t>(winograd_workspace_bytes(m)) / sizeof(float));
  winograd_pack(m, w.data(), true, packed.data());
  winograd_forward(m, dy.data(), packed.data(), {}, dx.data(), workspace.data());
  const float tolerance = 2e-6F * static_cast<float>(g.o);
  for (size_t i = 0; i < dx.size(); ++i) ASSERT_NEAR(dx[i], expected[i], tolerance) << "element " << i;
}

TEST(Winograd, MirroredItIsTheGradientOfTheData) {
  expect_gradient_equals_sum(geometry(2, 48, 80, 9, 7, 1));
  expect_gradient_equals_sum(geometry(1, 32, 64, 8, 8, 0));
  expect_gradient_equals_sum(geometry(1, 64, 32, 6, 5, 2));
  ConvGeometry last = geometry(1, 32, 48, 6, 6, 1);
  last.weights_last = true;
  expect_gradient_equals_sum(last);
}

TEST(Winograd, SaysWhichImagesHaveResultsInDoubt) {
  const ConvGeometry g = geometry(4, 32, 32, 9, 7, 1);
  const auto w = random_values(g.o * g.c * 9, 2);
  for (const float value : {NAN, INFINITY, -INFINITY, 1e30F, -3e38F}) {
    auto x = random_values(g.n * g.c * g.in_size(), 1);
    x[static_cast<size_t>(2 * g.c * g.in_size() + 5)] = value;
    std::vector<uint8_t> doubtful(static_cast<size_t>(g.n));
    WinogradEnd end;
    end.relu = true;
    end.doubtful = doubtful.data();
    winograd(g, x, w, end);
    EXPECT_EQ(doubtful, (std::vector<uint8_t>{0, 0, 1, 0})) << value;
    const auto dy = random_values(g.n * g.o * g.out_size(), 3);
    std::vector<float> workspace(static_cast<size_t>(winograd_backward_weights_workspace_bytes(g)) / sizeof(float));
    std::vector<float> dw(static_cast<size_t>(g.o * g.c * 9));
    EXPECT_FALSE(winograd_backward_weights(g, x.data(), dy.data(), dw.data(), workspace.data())) << value;
  }
}

void expect_weight_gradient_equals_sum(const ConvGeometry& g) {
  ASSERT_TRUE(winograd_applies(g));
  const auto x = random_values(g.n * g.c * g.in_size(), 1), dy = random_values(g.n * g.o * g.out_size(), 2);
  std::vector<float> expected(static_cast<size_t>(g.o * g.c * 9)), dw(expected.size(), NAN);
  conv_backward_weights_reference<float>(g, x.data(), dy.data(), expected.data(), nullptr);
  std::vector<float> workspace(static_cast<size_t>(winograd_backward_weights_workspace_bytes(g)) / sizeof(float));
  EXPECT_TRUE(winograd_backward_weights(g, x.data(), dy.data(), dw.data(), workspace.data()));
  const float tolerance = 1e-6F * static_cast<float>(g.n * g.out_size() + 32);
  for (size_t i = 0; i < dw.size(); ++i) ASSERT_NEAR(dw[i], expected[i], tolerance) << "element " << i;
}

TEST(Winograd, GivesTheGradientOfTheWeights) {
  expect_weight_gradient_equals_sum(geometry(2, 48, 80, 9, 7, 1));
  expect_weight_gradient_equals_sum(geometry(1, 32, 64, 8, 8, 0));
  expect_weight_gradient_equals_sum(geometry(3, 64, 32, 21, 20, 2));
  expect_weight_gradient_equals_sum(geometry(3, 512, 32, 16, 17, 1));
  ConvGeometry last = geometry(1, 32, 48, 6, 6, 1);
  last.weights_last = true;
  expect_weight_gradient_equals_sum(last);
}

TEST(Winograd, DeclinesOtherForms) {
  const ConvGeometry fits = geometry(1, 32, 32, 8, 8, 1);
  for (const auto change : {+[](ConvGeometry& g) { g.stride[1] = 2; }, +[](ConvGeometry& g) { g.dilate[2] = 2; },
                            +[](ConvGeometry& g) { g.kernel[1] = 1; }, +[](ConvGeometry& g) { g.groups = 2; },
                            +[](ConvGeometry& g) { g.channels_last = false; }, +[](ConvGeometry& g) { g.c = 40; },
                            +[](ConvGeometry& g) { g.spatial = 3; }, +[](ConvGeometry& g) { g.n = 0; },
                            +[](ConvGeometry& g) { g.pad[1] = -1; }}) {
    ConvGeometry g = fits;
    change(g);
    EXPECT_FALSE(winograd_applies(g));
  }
  EXPECT_TRUE(winograd_applies(fits));
}

}  // namespace
}  // namespace hybridnet::kernels
