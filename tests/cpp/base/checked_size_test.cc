#include "base/checked_size.h"

#include <gtest/gtest.h>

#include "hybridnet/error.h"

namespace hybridnet {
namespace {

constexpr int64_t kLargest = INT64_MAX;

TEST(CheckedSize, GivesWhatFits) {
  EXPECT_EQ(checked_times(6, 7), 42);
  EXPECT_EQ(checked_times(kLargest, 1), kLargest);
  EXPECT_EQ(checked_times(kLargest, 0), 0);
  EXPECT_EQ(checked_plus(kLargest - 1, 1), kLargest);
}

TEST(CheckedSize, ThrowsWhereItWouldWrapAround) {
  EXPECT_THROW(checked_times(int64_t{1} << 32, int64_t{1} << 31), ShapeError);
  EXPECT_THROW(checked_plus(kLargest, 1), ShapeError);
}

}  // namespace
}  // namespace hybridnet
