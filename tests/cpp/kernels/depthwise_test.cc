#include "kernels/conv/depthwise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "hybridnet/threads.h"
#include "kernels/conv/conv_reference.h"
#include "kernels/random_values.h"

namespace hybridnet::kernels {
namespace {

struct Sizes {
  int64_t n, c, height, width, stride, pad;
};

ConvGeometry geometry(const Sizes& s) {
  ConvGeometry g;
  g.n = s.n;
  g.c = g.o = g.groups = s.c;
  g.in = {1, s.height, s.width};
  g.kernel = {1, 3, 3};
  g.stride = {1, s.stride, s.stride};
  g.pad = {0, s.pad, s.pad};
  g.out = {1, (s.height + 2 * s.pad - 3) / s.stride + 1, (s.width + 2 * s.pad - 3) / s.stride + 1};
  g.channels_last = true;
  return g;
}

struct Operands {
  std::vector<float> x, w, bias, addend;
  explicit Operands(const ConvGeometry& g)
      : x(random_values(g.n * g.c * g.in_size(), 1)),
        w(random_values(g.c * 9, 2)),
        bias(random_values(g.c, 3)),
        addend(random_values(g.n * g.c * g.out_size(), 4)) {}
  std::vector<float> run(const ConvGeometry& g, const DepthwiseEnd& end) const {
    std::vector<float> packed(w.size()), y(addend.size(), NAN);
    depthwise_pack(g, w.data(), packed.data());
    depthwise_forward(g, x.data(), packed.data(), end, y.data());
    return y;
  }
};

// Images smaller than the weights, numbers of channels that do not fill a vector, and padding beyond the weights.
constexpr Sizes kSizes[] = {{1, 8, 5, 7, 1, 1},  {2, 13, 8, 6, 2, 1}, {1, 1, 3, 3, 1, 0},    {1, 20, 1, 1, 1, 1},
                            {2, 32, 9, 4, 3, 2}, {1, 7, 2, 9, 1, 4},  {1, 40, 12, 12, 2, 0}, {3, 9, 1, 5, 2, 3}};

TEST(Depthwise, EqualsTheSumForAnySize) {
  for (const Sizes& s : kSizes) {
    const ConvGeometry g = geometry(s);
    ASSERT_TRUE(is_depthwise(g));
    const Operands o(g);
    std::vector<float> expected(o.addend.size());
    conv_forward_reference(g, o.x.data(), o.w.data(), static_cast<const float*>(nullptr), expected.data());
    const std::vector<float> y = o.run(g, {});
    for (size_t i = 0; i < y.size(); ++i) ASSERT_NEAR(y[i], expected[i], 2e-6) << s.c << " channels, element " << i;
  }
}

TEST(Depthwise, AddsBiasAndAddendWithinBounds) {
  for (const Sizes& s : kSizes) {
    const ConvGeometry g = geometry(s);
    const Operands o(g);
    std::vector<float> expected(o.addend.size());
    conv_forward_reference(g, o.x.data(), o.w.data(), o.bias.data(), expected.data());
    const std::vector<float> y = o.run(g, {o.bias.data(), o.addend.data(), -0.5F, 0.75F});
    for (size_t i = 0; i < y.size(); ++i)
      ASSERT_NEAR(y[i], std::clamp(expected[i] + o.addend[i], -0.5F, 0.75F), 2e-6) << s.c << " channels, element " << i;
  }
}

// Taps outside the image are skipped: 0 times infinity would be NaN.
TEST(Depthwise, PaddingIsNotMultiplied) {
  const ConvGeometry g = geometry({1, 8, 4, 4, 1, 1});
  Operands o(g);
  std::fill(o.x.begin(), o.x.end(), 1.0F);
  std::fill(o.w.begin(), o.w.end(), INFINITY);
  for (const float y : o.run(g, {})) ASSERT_EQ(y, INFINITY);
}

TEST(Depthwise, NanPassesBounds) {
  const ConvGeometry g = geometry({1, 8, 3, 3, 1, 0});
  Operands o(g);
  o.x[0] = NAN;
  EXPECT_TRUE(std::isnan(o.run(g, {.low = 0, .high = 6})[0]));
}

TEST(Depthwise, SameBitsForAnyNumberOfCores) {
  const ConvGeometry g = geometry({2, 64, 40, 40, 1, 1});
  const Operands o(g);
  const auto on = [&](int cores) {
    const CoreScope scope(cores);
    return o.run(g, {.bias = o.bias.data()});
  };
  const std::vector<float> alone = on(1);
  EXPECT_EQ(on(2), alone);
  EXPECT_EQ(on(3), alone);
}

TEST(Depthwise, OtherConvolutionsAreNone) {
  const ConvGeometry fits = geometry({1, 8, 5, 5, 1, 1});
  ConvGeometry g = fits;
  g.channels_last = false;
  EXPECT_FALSE(is_depthwise(g));
  g = fits;
  g.groups = 4;
  EXPECT_FALSE(is_depthwise(g));
  g = fits;
  g.o = 16;  // two outputs per channel
  EXPECT_FALSE(is_depthwise(g));
  g = fits;
  g.kernel[2] = 5;
  EXPECT_FALSE(is_depthwise(g));
  g = fits;
  g.dilate[1] = 2;
  EXPECT_FALSE(is_depthwise(g));
}

}  // namespace
}  // namespace hybridnet::kernels
