#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "hybridnet/base.h"
#include "hybridnet/error.h"

namespace hybridnet {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

float value_of_half(uint16_t bits) {
  const int exponent = bits >> 10 & 31;
  const float mantissa = static_cast<float>(bits & 1023);
  const float sign = bits & 0x8000 ? -1.f : 1.f;
  if (exponent == 31) return mantissa == 0 ? sign * kInf : kNaN;
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

template <typename T>
T of_bits(uint16_t bits) {
  T value;
  value.bits = bits;
  return value;
}

TEST(Float16, EveryValueReadsAsIeeeSaysAndRoundTrips) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float expected = value_of_half(static_cast<uint16_t>(bits));
    const float value = of_bits<float16>(static_cast<uint16_t>(bits));
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      ASSERT_TRUE(std::isnan(static_cast<float>(float16(value)))) << bits;
    } else {
      ASSERT_EQ(std::bit_cast<uint32_t>(value), std::bit_cast<uint32_t>(expected)) << bits;
      ASSERT_EQ(float16(value).bits, bits);
    }
  }
}

// Between two neighbors, values below the middle round down, values above it up, and the middle to the even neighbor.
TEST(Float16, RoundsToNearestEven) {
  for (uint16_t bits = 0; bits < 0x7bff; ++bits) {
    const float low = value_of_half(bits);
    const float high = value_of_half(bits + 1);
    const float middle = low + (high - low) / 2;  // exact: a float has 13 bits more
    const uint16_t even = bits % 2 == 0 ? bits : bits + 1;
    ASSERT_EQ(float16(middle).bits, even) << bits;
    ASSERT_EQ(float16(std::nextafter(middle, 0.f)).bits, bits);
    ASSERT_EQ(float16(std::nextafter(middle, kInf)).bits, bits + 1);
    ASSERT_EQ(float16(-middle).bits, even | 0x8000);
  }
}

TEST(Float16, OverflowsToInfinityAndUnderflowsToSignedZero) {
  EXPECT_EQ(float16(65519.99f).bits, 0x7bff);
  EXPECT_EQ(float16(65520.f).bits, 0x7c00);
  EXPECT_EQ(float16(1e30f).bits, 0x7c00);
  EXPECT_EQ(float16(-kInf).bits, 0xfc00);
  EXPECT_EQ(float16(1e-30f).bits, 0x0000);
  EXPECT_EQ(float16(-0.f).bits, 0x8000);
  EXPECT_EQ(float16(std::ldexp(1.f, -25)).bits, 0);  // half of the smallest value rounds to even, which is zero
  EXPECT_EQ(float16(std::ldexp(1.01f, -25)).bits, 1);
}

TEST(BFloat16, EveryValueRoundTrips) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = of_bits<bfloat16>(static_cast<uint16_t>(bits));
    ASSERT_EQ(std::bit_cast<uint32_t>(value), bits << 16);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(static_cast<float>(bfloat16(value))));
    } else {
      ASSERT_EQ(bfloat16(value).bits, bits);
    }
  }
}

TEST(BFloat16, RoundsToNearestEven) {
  for (uint32_t bits = 0; bits < 0x7f7f; ++bits) {
    const uint32_t middle = bits << 16 | 0x8000u;
    ASSERT_EQ(bfloat16(std::bit_cast<float>(middle)).bits, bits % 2 == 0 ? bits : bits + 1);
    ASSERT_EQ(bfloat16(std::bit_cast<float>(middle - 1)).bits, bits);
    ASSERT_EQ(bfloat16(std::bit_cast<float>(middle + 1)).bits, bits + 1);
  }
  EXPECT_EQ(bfloat16(std::numeric_limits<float>::max()).bits, 0x7f80);
  // A NaN whose payload is only in the bits cut off must not become infinity.
  EXPECT_TRUE(std::isnan(static_cast<float>(bfloat16(std::bit_cast<float>(0x7f800001u)))));
}

TEST(DType, NamesAndSizesAgreeWithTheCppTypes) {
  for (int code = 0; code < kDTypeCodes; ++code) {
    if (!dtype_valid_code(code)) continue;
    const DType dtype = static_cast<DType>(code);
    EXPECT_TRUE(kAllDTypes.has(dtype));
    EXPECT_EQ(dtype_from_name(dtype_name(dtype)), dtype);
    dispatch_dtype(dtype, [&](auto zero) {
      EXPECT_EQ(dtype_of<decltype(zero)>::value, dtype);
      EXPECT_EQ(static_cast<int64_t>(sizeof(zero)), dtype_size(dtype));
    });
  }
  EXPECT_FALSE(dtype_valid_code(-1));
  EXPECT_FALSE(dtype_valid_code(8));
  EXPECT_FALSE(dtype_valid_code(kDTypeCodes));
}

TEST(DType, UnknownNameIsAnErrorThatListsTheKnownOnes) {
  try {
    dtype_from_name("complex64");
    FAIL();
  } catch (const DTypeError& error) {
    EXPECT_STREQ(error.what(),
                 "expected one of float32, float64, float16, uint8, int32, int8, int64, bool, bfloat16, "
                 "got 'complex64'.");
  }
}

}  // namespace
}  // namespace hybridnet
