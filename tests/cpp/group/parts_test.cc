// Sums by parts and their gathering: the bits of the whole sum, whatever the parts are.
#include <gtest/gtest.h>

#include "group/hub.h"

namespace hybridnet::group {
namespace {

using Values = std::vector<float>;

Values values_of(int rank, int64_t count) {
  Values values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = 1.0f / static_cast<float>(3 + (i * 7 + static_cast<size_t>(rank) * 13) % 101);
  return values;
}

// Parts of equal size, one process that has everything, and one that has nothing.
std::vector<std::vector<int64_t>> all_bounds(int64_t count, int size) {
  std::vector<std::vector<int64_t>> found(3);
  for (int part = 0; part <= size; ++part) {
    found[0].push_back(Group::part_begin(count, part, size));
    found[1].push_back(part == size ? count : 0);
    found[2].push_back(part == 0 ? 0 : count - (size - part) * (count / (size + 1)));
  }
  return found;
}

TEST(GroupParts, SumsByPartsAndGatheringGiveTheBitsOfTheSum) {
  for (int size : {1, 2, 3, 4}) {
    for (int64_t count : {7, 40'000}) {
      for (const std::vector<int64_t>& bounds : all_bounds(count, size)) {
        Hub hub;
        const auto errors = run_processes(hub, size, [&](Group& group) {
          const Values own = values_of(group.rank(), count);
          const void* node = own.data();
          Values expected(own.size()), all(own.size(), -1.0f);
          Call call{.kind = Call::Kind::kSum, .dtype = DType::kFloat32, .count = count, .label = "x"};
          group.sum(call, group.next_number(), {&node, 1}, expected.data());
          call.kind = Call::Kind::kSumScatter;
          float* const part = all.data() + bounds[static_cast<size_t>(group.rank())];
          group.sum_scatter(call, group.next_number(), {&node, 1}, bounds, part);
          call.kind = Call::Kind::kGatherParts;
          group.gather_parts(call, group.next_number(), bounds, all.data());
          EXPECT_EQ(all, expected) << size << " processes, " << count << " elements";
        });
        for (const std::string& error : errors) EXPECT_EQ(error, "");
      }
    }
  }
}

TEST(GroupParts, EachProcessSendsWhatASumSends) {
  constexpr int64_t kCount = 96'000;
  for (int size : {2, 3, 4}) {
    Hub hub;
    run_processes(hub, size, [&](Group& group) {
      const std::vector<int64_t> bounds = all_bounds(kCount, size)[0];
      Values values = values_of(group.rank(), kCount);
      const void* node = values.data();
      const uint64_t before = group.bytes_sent();
      Call call{.kind = Call::Kind::kSumScatter, .dtype = DType::kFloat32, .count = kCount, .label = "x"};
      Values part(static_cast<size_t>(kCount));
      group.sum_scatter(call, group.next_number(), {&node, 1}, bounds, part.data());
      call.kind = Call::Kind::kGatherParts;
      group.gather_parts(call, group.next_number(), bounds, values.data());
      const double expected = 2.0 * (size - 1) / size * kCount * sizeof(float);
      EXPECT_NEAR(static_cast<double>(group.bytes_sent() - before), expected, 0.01 * expected);
    });
  }
}

}  // namespace
}  // namespace hybridnet::group
