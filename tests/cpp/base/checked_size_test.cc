#include "base/checked_size.h"

#include <gtest/gtest.h>

#include "hybridnet/error.h"

namespace hybridnet {
namespace {

TEST(CheckedSize, ReturnsSumsAndProductsOfPossibleSizes) {
  EXPECT_EQ(checked_times(6, 7), 42);
  EXPECT_EQ(checked_times(kMaxElements, 1), kMaxElements);
  EXPECT_EQ(checked_times(INT64_MAX, 0), 0);
  EXPECT_EQ(checked_plus(kMaxElements - 1, 1), kMaxElements);
}

TEST(CheckedSize, ThrowsAboveTheLargestSizeAndNamesTheArgument) {
  EXPECT_THROW(checked_times(int64_t{1} << 32, int64_t{1} << 31), ShapeError);
  EXPECT_THROW(checked_times(int64_t{1} << 32, int64_t{1} << 25), ShapeError);
  EXPECT_THROW(checked_plus(INT64_MAX, 1), ShapeError);
  try {
    checked_plus(kMaxElements, 1, "pad_width");
    FAIL();
  } catch (const ShapeError& error) {
    EXPECT_NE(std::string(error.what()).find("pad_width"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace hybridnet
