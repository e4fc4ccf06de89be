// Elementwise loops: accuracy compared with long double, limits, every length around a vector, in-place operation, and
// conversions of dtypes.
#include "kernels/elementwise/pointwise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "kernels/elementwise/convert.h"

namespace hybridnet::kernels {
namespace {

using Exact = std::function<long double(long double)>;

template <class T>
double ulps(T got, long double want) {
  const T rounded = static_cast<T>(want);
  if (std::isnan(rounded) || std::isinf(rounded) || std::isinf(got)) {
    return std::isnan(rounded) ? (std::isnan(got) ? 0 : 1e9) : (got == rounded ? 0 : 1e9);
  }
  const T magnitude = std::fabs(rounded);
  const long double unit = std::nextafter(magnitude, std::numeric_limits<T>::infinity()) - magnitude;
  return static_cast<double>(std::fabs((static_cast<long double>(got) - want) / unit));
}

template <class T>
double worst_ulps(Pointwise function, const Exact& exact, double low, double high) {
  std::mt19937_64 generator(7);
  std::uniform_real_distribution<double> uniform(low, high);
  std::vector<T> x(20011), y(x.size());
  for (T& v : x) v = static_cast<T>(uniform(generator));
  for (int i = 0; i < 70; ++i) {  // down to the smallest normal numbers
    const double tiny = std::pow(10.0, -0.5 * i) * (i % 2 ? 1 : -1);
    if (tiny >= low && tiny <= high) x[static_cast<size_t>(i)] = static_cast<T>(tiny);
  }
  const void* in[] = {x.data()};
  apply(loops(function), dtype_of<T>::value, in, y.data(), static_cast<int64_t>(x.size()));
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) worst = std::max(worst, ulps(y[i], exact(static_cast<long double>(x[i]))));
  return worst;
}

struct Accuracy {
  const char* name;
  Pointwise function;
  Exact exact;
  double low, high, bound;
};

class PointwiseAccuracy : public testing::TestWithParam<Accuracy> {};

TEST_P(PointwiseAccuracy, IsWithinItsBoundForFloat32) {
  const Accuracy& a = GetParam();
  EXPECT_LE(worst_ulps<float>(a.function, a.exact, a.low, a.high), a.bound);
}
TEST_P(PointwiseAccuracy, IsWithinItsBoundForFloat64) {
  const Accuracy& a = GetParam();
  EXPECT_LE(worst_ulps<double>(a.function, a.exact, a.low, a.high), a.bound);
}

INSTANTIATE_TEST_SUITE_P(
    Exponentials, PointwiseAccuracy,
    testing::Values(
        Accuracy{"exp", Pointwise::kExp, [](long double x) { return std::exp(x); }, -87, 88, 1},
        Accuracy{"expm1", Pointwise::kExpm1, [](long double x) { return std::expm1(x); }, -20, 80, 4},
        Accuracy{"expm1_near_0", Pointwise::kExpm1, [](long double x) { return std::expm1(x); }, -1, 1, 4},
        Accuracy{"log", Pointwise::kLog, [](long double x) { return std::log(x); }, 0, 100, 1},
        Accuracy{"log_near_1", Pointwise::kLog, [](long double x) { return std::log(x); }, 0.5, 2, 1},
        Accuracy{"log2", Pointwise::kLog2, [](long double x) { return std::log2(x); }, 0.01, 100, 2},
        Accuracy{"log10", Pointwise::kLog10, [](long double x) { return std::log10(x); }, 0.01, 100, 2},
        Accuracy{"log1p", Pointwise::kLog1p, [](long double x) { return std::log1p(x); }, -0.99, 50, 3},
        Accuracy{"tanh", Pointwise::kTanh, [](long double x) { return std::tanh(x); }, -10, 10, 3},
        Accuracy{"tanh_near_0", Pointwise::kTanh, [](long double x) { return std::tanh(x); }, -1, 1, 3},
        Accuracy{"sigmoid", Pointwise::kSigmoid, [](long double x) { return 1 / (1 + std::exp(-x)); }, -80, 30, 3},
        Accuracy{"softrelu", Pointwise::kSoftrelu, [](long double x) { return std::log1p(std::exp(x)); }, -80, 30, 3},
        Accuracy{"sin", Pointwise::kSin, [](long double x) { return std::sin(x); }, -100, 100, 4},
        Accuracy{"sin_far", Pointwise::kSin, [](long double x) { return std::sin(x); }, -1000000.0, 1000000.0, 4},
        Accuracy{"cos", Pointwise::kCos, [](long double x) { return std::cos(x); }, -100, 100, 4},
        Accuracy{"tan", Pointwise::kTan, [](long double x) { return std::tan(x); }, -100, 100, 4},
        Accuracy{"tan_far", Pointwise::kTan, [](long double x) { return std::tan(x); }, -1000000.0, 1000000.0, 4},
        Accuracy{"arcsin", Pointwise::kArcsin, [](long double x) { return std::asin(x); }, -1, 1, 3},
        Accuracy{"arccos", Pointwise::kArccos, [](long double x) { return std::acos(x); }, -1, 1, 3},
        Accuracy{"arctan", Pointwise::kArctan, [](long double x) { return std::atan(x); }, -30, 30, 3},
        Accuracy{"sinh", Pointwise::kSinh, [](long double x) { return std::sinh(x); }, -88, 88, 4},
        Accuracy{"sinh_near_0", Pointwise::kSinh, [](long double x) { return std::sinh(x); }, -1, 1, 4},
        Accuracy{"cosh", Pointwise::kCosh, [](long double x) { return std::cosh(x); }, -88, 88, 4},
        Accuracy{"arcsinh", Pointwise::kArcsinh, [](long double x) { return std::asinh(x); }, -50, 50, 4},
        Accuracy{"arccosh", Pointwise::kArccosh, [](long double x) { return std::acosh(x); }, 1, 50, 4},
        Accuracy{"arctanh", Pointwise::kArctanh, [](long double x) { return std::atanh(x); }, -0.999, 0.999, 4},
        Accuracy{"erf", Pointwise::kErf, [](long double x) { return std::erf(x); }, -6, 6, 1.5},
        Accuracy{"gamma", Pointwise::kGamma, [](long double x) { return std::tgamma(x); }, 0.1, 30, 10},
        Accuracy{"cbrt", Pointwise::kCbrt, [](long double x) { return std::cbrt(x); }, -100, 100, 3},
        Accuracy{"rcbrt", Pointwise::kRcbrt, [](long double x) { return 1 / std::cbrt(x); }, 0.1, 100, 4},
        Accuracy{"gammaln", Pointwise::kGammaln, [](long double x) { return std::lgamma(x); }, 3, 100, 4},
        Accuracy{"gelu", Pointwise::kGelu, [](long double x) { return x / 2 * (1 + std::erf(x / std::sqrt(2.0L))); },
                 -1, 6, 4},
        Accuracy{"sqrt", Pointwise::kSqrt, [](long double x) { return std::sqrt(x); }, 0, 100, 0.51}),
    [](const auto& info) { return std::string(info.param.name); });

template <class T>
std::vector<T> run(Pointwise function, std::vector<T> x, std::vector<double> scalars = {}) {
  const void* in[] = {x.data()};
  apply(loops(function), dtype_of<T>::value, in, x.data(), static_cast<int64_t>(x.size()), scalars.data());
  return x;
}

constexpr float kInf = std::numeric_limits<float>::infinity();
const float kNaN = std::numeric_limits<float>::quiet_NaN();

void expect_same(const std::vector<float>& got, const std::vector<float>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(want[i])) {
      EXPECT_TRUE(std::isnan(got[i])) << "element " << i;
    } else {
      EXPECT_EQ(got[i], want[i]) << "element " << i;
      EXPECT_EQ(std::signbit(got[i]), std::signbit(want[i])) << "element " << i;
    }
  }
}

// Programs that compute 1 - y * y or atanh(y) rely on this.
TEST(Pointwise, TanhIsNeverAboveOne) {
  std::vector<float> x;
  for (float v = 0; v < 20; v += 1e-4F) x.push_back(v);
  for (const float y : run<float>(Pointwise::kTanh, x)) ASSERT_LE(y, 1.0F);
}

TEST(Pointwise, GivesTheLimitsOfExponentials) {
  expect_same(run<float>(Pointwise::kExp, {kInf, -kInf, kNaN, 3000, -3000, 0}), {kInf, 0, kNaN, kInf, 0, 1});
  expect_same(run<float>(Pointwise::kExpm1, {kInf, -kInf, kNaN, 3000, -3000, -0.0f}),
              {kInf, -1, kNaN, kInf, -1, -0.0f});
  expect_same(run<float>(Pointwise::kLog, {kInf, 0, -0.0f, -1, kNaN, 1}), {kInf, -kInf, -kInf, kNaN, kNaN, 0});
  expect_same(run<float>(Pointwise::kLog1p, {kInf, -1, -2, kNaN, -0.0f}), {kInf, -kInf, kNaN, kNaN, -0.0f});
  expect_same(run<float>(Pointwise::kTanh, {kInf, -kInf, kNaN, 50, -0.0f}), {1, -1, kNaN, 1, -0.0f});
  expect_same(run<float>(Pointwise::kSigmoid, {kInf, -kInf, kNaN, 0}), {1, 0, kNaN, 0.5f});
  expect_same(run<float>(Pointwise::kSoftrelu, {kInf, -kInf, kNaN, 3000}), {kInf, 0, kNaN, 3000});
}

TEST(Pointwise, GivesTheLimitsOfTrigonometry) {
  expect_same(run<float>(Pointwise::kSin, {kInf, kNaN, -0.0f}), {kNaN, kNaN, -0.0f});
  expect_same(run<float>(Pointwise::kCos, {-kInf, kNaN, 0}), {kNaN, kNaN, 1});
  expect_same(run<float>(Pointwise::kTan, {kInf, kNaN, -0.0f}), {kNaN, kNaN, -0.0f});
  expect_same(run<float>(Pointwise::kArcsin, {1.5f, kNaN, -0.0f}), {kNaN, kNaN, -0.0f});
  expect_same(run<float>(Pointwise::kArccos, {-1.5f, kNaN, 1}), {kNaN, kNaN, 0});
  expect_same(run<float>(Pointwise::kArctan, {kInf, kNaN, -0.0f}), {1.57079632679f, kNaN, -0.0f});
  expect_same(run<float>(Pointwise::kSinh, {kInf, -kInf, kNaN, -0.0f, 100}), {kInf, -kInf, kNaN, -0.0f, kInf});
  expect_same(run<float>(Pointwise::kCosh, {kInf, -kInf, kNaN, 0, 100}), {kInf, kInf, kNaN, 1, kInf});
  expect_same(run<float>(Pointwise::kArcsinh, {kInf, -kInf, kNaN, -0.0f}), {kInf, -kInf, kNaN, -0.0f});
  expect_same(run<float>(Pointwise::kArccosh, {kInf, -kInf, kNaN, 0.5f, 1, -3}), {kInf, kNaN, kNaN, kNaN, 0, kNaN});
  expect_same(run<float>(Pointwise::kArctanh, {1, -1, kNaN, 2, -0.0f}), {kInf, -kInf, kNaN, kNaN, -0.0f});
  expect_same(run<float>(Pointwise::kErf, {kInf, -kInf, kNaN, -0.0f, 20}), {1, -1, kNaN, -0.0f, 1});
  expect_same(run<float>(Pointwise::kErfinv, {1, -1, 2, kNaN, 0}), {kInf, -kInf, kNaN, kNaN, 0});
}

TEST(Pointwise, InverseErrorFunctionInvertsIt) {
  for (const double x : {1e-20, 1e-8, 0.1, 0.5, 0.84, 0.86, 0.99, 0.999999}) {
    for (const double signed_x : {x, -x}) {
      const double y = run<double>(Pointwise::kErfinv, {signed_x})[0];
      EXPECT_NEAR(std::erf(y) / signed_x, 1, 1e-15) << signed_x;
    }
  }
}

// Values by mpmath at 30 digits.
TEST(Pointwise, Polygamma) {
  const auto value = [](double order, double x) { return run<double>(Pointwise::kPolygamma, {x}, {order})[0]; };
  EXPECT_NEAR(value(0, 1), -0.57721566490153286, 1e-15);
  EXPECT_NEAR(value(0, 0.1), -10.423754940411076, 1e-14);
  EXPECT_NEAR(value(0, 50.5), 3.9120230054, 2e-3);
  EXPECT_NEAR(value(0, -0.5), 0.03648997397857652, 1e-15);
  EXPECT_NEAR(value(1, 1), 1.6449340668482264, 1e-15);
  EXPECT_NEAR(value(1, -0.5), 8.9348022005446793, 1e-14);
  EXPECT_NEAR(value(2, 1), -2.4041138063191886, 1e-14);
  EXPECT_NEAR(value(0, -30.25) - value(0, -29.25), 1 / 30.25, 1e-13);
  EXPECT_NEAR(value(1, -30.25) - value(1, -29.25), 1 / (30.25 * 30.25), 1e-13);
  EXPECT_TRUE(std::isnan(value(0, -3)));
}

TEST(Pointwise, RoundsAsNamed) {
  expect_same(run<float>(Pointwise::kRound, {0.5f, -0.5f, 2.5f, 0.49999997f, 8388609.0f, kNaN}),
              {1, -1, 3, 0, 8388609.0f, kNaN});
  expect_same(run<float>(Pointwise::kRint, {0.5f, 1.5f, -0.5f, -1.5f, 2.6f}), {0, 1, -1, -2, 3});
  expect_same(run<float>(Pointwise::kTrunc, {1.7f, -1.7f}), {1, -1});
  EXPECT_EQ(run<int32_t>(Pointwise::kFloor, {-3, 7}), (std::vector<int32_t>{-3, 7}));
}

TEST(Pointwise, KeepsNaNThroughRectifiersAndClip) {
  expect_same(run<float>(Pointwise::kRelu, {kNaN, -1, 2}), {kNaN, 0, 2});
  expect_same(run<float>(Pointwise::kClip, {kNaN, -5, 5, 0.5f}, {-1, 1}), {kNaN, -1, 1, 0.5f});
}

TEST(Pointwise, IntegersNeverTrap) {
  const std::vector<int32_t> a = {std::numeric_limits<int32_t>::min(), 7, -7, 7, 5}, b = {-1, 0, 2, -2, -1};
  std::vector<int32_t> out(5);
  const void* in[] = {a.data(), b.data()};
  apply(loops(Pointwise::kDiv), DType::kInt32, in, out.data(), 5);
  EXPECT_EQ(out, (std::vector<int32_t>{std::numeric_limits<int32_t>::min(), 0, -3, -3, -5}));
  apply(loops(Pointwise::kMod), DType::kInt32, in, out.data(), 5);
  EXPECT_EQ(out, (std::vector<int32_t>{0, 0, 1, -1, 0}));
  EXPECT_EQ(run<int8_t>(Pointwise::kNegative, {-128, 5}), (std::vector<int8_t>{-128, -5}));
  EXPECT_EQ(run<int32_t>(Pointwise::kReciprocal, {0, 1, 2}), (std::vector<int32_t>{0, 1, 0}));
}

TEST(Pointwise, EveryLengthAndInPlace) {
  for (int64_t n = 0; n < 70; ++n) {
    std::vector<float> x(static_cast<size_t>(n) + 1), y;
    for (size_t i = 0; i < x.size(); ++i) x[i] = 0.1f * static_cast<float>(i);
    y = x;
    const void* in[] = {x.data()};
    apply(loops(Pointwise::kExp), DType::kFloat32, in, x.data(), n);
    for (int64_t i = 0; i < n; ++i) EXPECT_NEAR(x[i], std::exp(y[i]), 1e-6 * x[i]) << n;
    EXPECT_EQ(x[n], y[n]) << "wrote past the end, n = " << n;
  }
}

TEST(Pointwise, PowersFollowTheStandardAtTheirLimits) {
  std::vector<float> edges = {0,    -0.0f, 1, -1, kInf,  -kInf,  kNaN, 2,      -2,
                              0.5f, -0.5f, 3, -3, 1e30f, -1e30f, 2.5f, 1e-40f, 16777217.0f};
  std::vector<float> a, b, want;
  for (const float x : edges) {
    for (const float y : edges) {
      a.push_back(x);
      b.push_back(y);
      want.push_back(std::pow(x, y));
    }
  }
  std::vector<float> got(a.size());
  const void* in[] = {a.data(), b.data()};
  apply(loops(Pointwise::kPower), DType::kFloat32, in, got.data(), static_cast<int64_t>(a.size()));
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(want[i])) {
      EXPECT_TRUE(std::isnan(got[i])) << a[i] << " ^ " << b[i];
    } else if (std::isinf(want[i]) || want[i] == 0) {
      EXPECT_EQ(got[i], want[i]) << a[i] << " ^ " << b[i];
      EXPECT_EQ(std::signbit(got[i]), std::signbit(want[i])) << a[i] << " ^ " << b[i];
    } else {
      EXPECT_NEAR(got[i], want[i], 2e-7 * std::fabs(want[i])) << a[i] << " ^ " << b[i];
    }
  }
}

TEST(Pointwise, CosineOfZeroIsOne) {
  EXPECT_EQ(run<double>(Pointwise::kCos, {0.0, -0.0, 1e-9})[0], 1.0);
  EXPECT_EQ(run<float>(Pointwise::kCos, {0.0f, -0.0f, 1e-5f}), (std::vector<float>{1, 1, 1}));
}

TEST(Pointwise, RepeatsOneElement) {
  const std::vector<double> a = {1, 2, 3}, s = {10};
  std::vector<double> out(3);
  const void* right[] = {a.data(), s.data()};
  apply(loops(Pointwise::kSub), DType::kFloat64, right, out.data(), 3, nullptr, Repeat::kSecond);
  EXPECT_EQ(out, (std::vector<double>{-9, -8, -7}));
  const void* left[] = {s.data(), a.data()};
  apply(loops(Pointwise::kSub), DType::kFloat64, left, out.data(), 3, nullptr, Repeat::kFirst);
  EXPECT_EQ(out, (std::vector<double>{9, 8, 7}));
}

TEST(Pointwise, HalvesGoThroughFloat32) {
  for (int64_t n : {1, 5, 600}) {
    std::vector<float16> a(static_cast<size_t>(n)), out(a.size());
    for (size_t i = 0; i < a.size(); ++i) a[i] = float16(0.01f * static_cast<float>(i % 300));
    const void* in[] = {a.data()};
    apply(loops(Pointwise::kTanh), DType::kFloat16, in, out.data(), n);
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(float(out[i]), std::tanh(float(a[i])), 5e-4) << i;
    const void* pair[] = {a.data(), a.data()};
    apply(loops(Pointwise::kMul), DType::kFloat16, pair, out.data(), n, nullptr, Repeat::kSecond);
    for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(float(out[i]), float(float16(float(a[i]) * float(a[0])))) << i;
  }
}

TEST(Pointwise, SplitsGiveTheSameResult) {
  const int64_t n = 300001;
  std::vector<float> a(n), whole(n), split(n);
  for (int64_t i = 0; i < n; ++i) a[static_cast<size_t>(i)] = static_cast<float>(i % 1000) * 0.01f;
  const void* in[] = {a.data()};
  apply(loops(Pointwise::kSigmoid), DType::kFloat32, in, whole.data(), n);
  apply_parallel(loops(Pointwise::kSigmoid), DType::kFloat32, in, split.data(), n);
  EXPECT_EQ(whole, split);
}

TEST(Convert, TruncatesSaturatesAtInt64AndWrapsInNarrowerIntegers) {
  const std::vector<float> x = {1.9f, -1.9f, 3e9f, -3e9f, kNaN, kInf, 300, -0.5f};
  std::vector<int32_t> i32(x.size());
  convert(DType::kFloat32, x.data(), DType::kInt32, i32.data(), 8);
  EXPECT_EQ(i32, (std::vector<int32_t>{1, -1, -1294967296, 1294967296, 0, -1, 300, 0}));
  std::vector<uint8_t> u8(x.size());
  convert(DType::kFloat32, x.data(), DType::kUInt8, u8.data(), 8);
  EXPECT_EQ(u8, (std::vector<uint8_t>{1, 255, 0, 0, 0, 255, 44, 0}));
  std::vector<int64_t> i64(x.size());
  convert(DType::kFloat32, x.data(), DType::kInt64, i64.data(), 8);
  EXPECT_EQ(i64, (std::vector<int64_t>{1, -1, 3000000000, -3000000000, 0, INT64_MAX, 300, 0}));
  bool truth[8];
  convert(DType::kFloat32, x.data(), DType::kBool, truth, 8);
  for (bool t : truth) EXPECT_TRUE(t);
}

TEST(Convert, HalfConversionsAreExactBothWays) {
  for (const DType half : {DType::kFloat16, DType::kBFloat16}) {
    std::vector<uint16_t> bits(65536), back(65536);
    for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<uint16_t>(i);
    std::vector<float> wide(65536);
    convert(half, bits.data(), DType::kFloat32, wide.data(), 65536);
    convert(DType::kFloat32, wide.data(), half, back.data(), 65536);
    for (size_t i = 0; i < bits.size(); ++i) {
      if (!std::isnan(wide[i])) {
        ASSERT_EQ(back[i], bits[i]) << dtype_name(half);
      }
    }
  }
}

}  // namespace
}  // namespace hybridnet::kernels
