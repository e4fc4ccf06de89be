// The cut of loops with a condition into segments, so that few copies of their variables are kept.
#include <gtest/gtest.h>

#include "passes/loops/checkpoint_while.h"

namespace hybridnet {
namespace {

double iterations_in(const WhileSegments& cut) {
  double total = static_cast<double>(cut.segment);
  for (int level = 1; level <= cut.levels; ++level)
    total *= static_cast<double>(level == cut.levels ? cut.outer : cut.inner);
  return total;
}

TEST(WhileSegments, HoldAllIterationsAndKeepAtMost64Copies) {
  for (const char* checkpoint : {"sqrt", "1", "2", "7", "1000", kPolicy}) {
    for (int64_t most = 1; most < int64_t{10'000'000'000}; most += 1 + most / 7) {
      const WhileSegments cut = segments_of(most, checkpoint);
      EXPECT_GE(iterations_in(cut), static_cast<double>(most)) << checkpoint << " " << most;
      EXPECT_LE(cut.kept(), 64) << checkpoint << " " << most;
    }
  }
}

TEST(WhileSegments, AreOneLoopWhereAllIterationsFitIntoOne) {
  EXPECT_EQ(segments_of(7, "7").levels, 0);
  EXPECT_EQ(segments_of(1, "sqrt").levels, 0);
  EXPECT_EQ(segments_of(0, "sqrt").levels, 0);
  EXPECT_EQ(segments_of(64, kPolicy).levels, 0);
}

TEST(WhileSegments, FormAsFewLevelsAs64CopiesAllow) {
  EXPECT_EQ(segments_of(2048, "sqrt").levels, 1);
  EXPECT_EQ(segments_of(2049, "sqrt").levels, 2);
  EXPECT_EQ(segments_of(32'000, "sqrt").levels, 2);
  EXPECT_EQ(segments_of(1'000'000, "sqrt").levels, 4);
  EXPECT_EQ(segments_of(64, "1").levels, 1);
  EXPECT_EQ(segments_of(65, "1").levels, 2);
}

TEST(WhileSegments, LeaveLittleRoomBeyondTheLimit) {
  for (int64_t most : {100, 3'000, 10'000, 50'000, 123'456, 1'000'000})
    EXPECT_LE(iterations_in(segments_of(most, "sqrt")), 1.2 * static_cast<double>(most) + 32) << most;
}

TEST(WhileSegments, HoldNumbersThatNoLoopReaches) {
  for (int64_t most : {int64_t{1} << 40, int64_t{1} << 50, INT64_MAX}) {
    const WhileSegments cut = segments_of(most, "1");
    EXPECT_GE(iterations_in(cut), 1e12);
    EXPECT_LE(cut.kept(), 100);
  }
}

}  // namespace
}  // namespace hybridnet
