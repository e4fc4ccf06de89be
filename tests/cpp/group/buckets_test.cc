#include "group/buckets.h"

#include <gtest/gtest.h>

namespace hybridnet::group {
namespace {

constexpr int64_t kMegabyte = 1 << 20;
using Buckets = std::vector<std::vector<size_t>>;

Buckets of(const std::vector<BucketItem>& items, int processes = 2) { return buckets_of(items, processes); }

TEST(Buckets, TheFirstIsCompleteAtOneMegabyteTheOthersByTheNumberOfProcesses) {
  constexpr DType kFloat = DType::kFloat32;
  EXPECT_EQ(of({}), Buckets{});
  EXPECT_EQ(of({{1, kFloat}}), (Buckets{{0}}));
  EXPECT_EQ(of({{kMegabyte - 1, kFloat}, {1, kFloat}, {5, kFloat}}), (Buckets{{0, 1}, {2}}));
  for (const auto& [processes, megabytes] : {std::pair{1, 4}, {4, 4}, {9, 9}, {25, 25}, {1000, 25}})
    EXPECT_EQ(
        of({{kMegabyte, kFloat}, {(megabytes - 1) * kMegabyte, kFloat}, {kMegabyte, kFloat}, {1, kFloat}}, processes),
        (Buckets{{0}, {1, 2}, {3}}));
  EXPECT_EQ(of({{99 * kMegabyte, kFloat}, {99 * kMegabyte, kFloat}}), (Buckets{{0}, {1}}));
}

TEST(Buckets, AMessageHasOneDType) {
  constexpr DType kFloat = DType::kFloat32, kDouble = DType::kFloat64;
  EXPECT_EQ(of({{8, kDouble}, {4, kFloat}, {8, kDouble}, {4, kFloat}}), (Buckets{{0, 2}, {1, 3}}));
  // The first complete message of any dtype ends the small ones.
  EXPECT_EQ(of({{kMegabyte, kFloat}, {2 * kMegabyte, kDouble}, {4, kFloat}, {4, kDouble}}),
            (Buckets{{0}, {2}, {1, 3}}));
}

TEST(Buckets, LabelsNameTheFirstAndTheLastArray) {
  const std::vector<std::string> names = {"b", "c", "a"};
  EXPECT_EQ(bucket_label("gradients", names), "gradients 'b'..'a'");
  EXPECT_EQ(bucket_label("gradients", std::span(names).first(1)), "gradients 'b'");
}

}  // namespace
}  // namespace hybridnet::group
