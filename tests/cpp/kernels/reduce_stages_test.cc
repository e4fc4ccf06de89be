// The order in which reductions combine elements, on the CPU and on devices (kernels/reduce/reduce_stages.h).
#include "kernels/reduce/reduce_stages.h"

#include <gtest/gtest.h>

#include <string>

namespace hybridnet::kernels {
namespace {

std::string text(const ReduceStages& plan) {
  std::string all;
  for (int i = 0; i < plan.count; ++i) {
    const ReduceStages::Stage& s = plan.stages[i];
    all += "(" + std::to_string(s.outer) + " " + std::to_string(s.reduced) + " " + std::to_string(s.inner) + ")";
  }
  return all + " of " + std::to_string(plan.reduced_count);
}

TEST(ReduceStages, ReduceTheInnermostAxesFirstAndMergeNeighbors) {
  EXPECT_EQ(text(ReduceStages({5, 7}, 0b10)), "(5 7 1) of 7");
  EXPECT_EQ(text(ReduceStages({5, 7}, 0b01)), "(1 5 7) of 5");
  EXPECT_EQ(text(ReduceStages({5, 7}, 0b11)), "(1 35 1) of 35");
  EXPECT_EQ(text(ReduceStages({3, 4, 5, 6}, 0b0101)), "(12 5 6)(1 3 24) of 15");
  EXPECT_EQ(text(ReduceStages({3, 4, 5, 6}, 0b1010)), "(60 6 1)(3 4 5) of 24");
  EXPECT_EQ(text(ReduceStages({3, 1, 5}, 0b101)), "(1 15 1) of 15") << "an axis of size 1 separates nothing";
}

TEST(ReduceStages, AreOneStageIfNothingIsReducedOrReducedAxesAreEmpty) {
  EXPECT_EQ(text(ReduceStages({3, 5}, 0)), "(15 1 1) of 1");
  EXPECT_EQ(text(ReduceStages(Shape{1}, 1)), "(1 1 1) of 1");
  EXPECT_EQ(text(ReduceStages({4, 0}, 0b10)), "(4 0 1) of 0");
  EXPECT_EQ(text(ReduceStages({4, 0}, 0b01)), " of 4") << "there are no outputs";
}

TEST(ColumnBlocks, CoverAllRowsAndSplitFewOutputsOnly) {
  for (const int64_t rows : {1, 255, 256, 257, 100000}) {
    for (const int64_t inner : {1, 10, 512, 40000}) {
      const ColumnBlocks split(1, rows, inner);
      EXPECT_GE(split.rows * split.blocks, rows);
      EXPECT_LT(split.rows * (split.blocks - 1), rows);
    }
  }
  EXPECT_EQ(ColumnBlocks(64, 100000, 1).blocks, 1);
  EXPECT_EQ(ColumnBlocks(1, 100000, 1).blocks, 64);
}

}  // namespace
}  // namespace hybridnet::kernels
