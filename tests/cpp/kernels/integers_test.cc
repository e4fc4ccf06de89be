#include "kernels/elementwise/integers.h"

#include <gtest/gtest.h>

#include <limits>
#include <type_traits>

namespace hybridnet::kernels {
namespace {

TEST(ToInteger, TruncatesSaturatesAndKeepsNanApart) {
  EXPECT_EQ(to_integer(2.9), 2);
  EXPECT_EQ(to_integer(-2.9), -2);
  EXPECT_EQ(to_integer(-0x1p63), INT64_MIN);
  EXPECT_EQ(to_integer(0x1p63), INT64_MAX);  // one more than the largest int64
  EXPECT_EQ(to_integer(-std::numeric_limits<double>::infinity()), INT64_MIN);
  EXPECT_EQ(to_integer(1e300), INT64_MAX);
  EXPECT_EQ(to_integer(std::numeric_limits<double>::quiet_NaN()), 0);
  EXPECT_EQ(to_integer<uint8_t>(255.9), 255);
  EXPECT_EQ(to_integer<uint8_t>(-0.5), 0);
  EXPECT_EQ(to_integer<uint8_t>(256), 255);
  EXPECT_EQ(to_integer<int8_t>(-1e9), -128);
  EXPECT_EQ(saturated_element<int32_t>(1e30), INT32_MAX);
  EXPECT_TRUE(saturated_element<bool>(0.25));
  EXPECT_EQ(to_integer(std::numeric_limits<double>::quiet_NaN(), INT64_MIN), INT64_MIN);
}

TEST(Wrapping, SumsOfIntegersWrapAround) {
  EXPECT_EQ(static_cast<int64_t>(wrapping_t<int64_t>{INT64_MAX} + wrapping_t<int64_t>{INT64_MAX}), -2);
  dispatch_wrapping(DType::kInt32, [](auto zero) { EXPECT_TRUE((std::is_same_v<decltype(zero), uint32_t>)); });
  dispatch_wrapping(DType::kFloat32, [](auto zero) { EXPECT_TRUE((std::is_same_v<decltype(zero), float>)); });
  dispatch_wrapping(DType::kBool, [](auto zero) { EXPECT_TRUE((std::is_same_v<decltype(zero), bool>)); });
}

}  // namespace
}  // namespace hybridnet::kernels
