// The rooms of a workspace for ranges of a parallel loop (kernels/memory/range_workspaces.h).
#include "kernels/memory/range_workspaces.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/memory/workspace_parts.h"

namespace hybridnet::kernels {
namespace {

TEST(RangeWorkspaces, RangesAtOneTimeHaveRoomsOfTheirOwn) {
  constexpr int64_t kItems = 2000;
  const int count = RangeWorkspaces::count_for(kItems);
  std::vector<std::atomic<int>> users(static_cast<size_t>(count));
  std::vector<char> memory(static_cast<size_t>(count) * 64);
  std::atomic<int64_t> done{0};
  std::atomic<int> shared{0};
  RangeWorkspaces rooms(memory.data(), 64, count);
  parallel_for(kItems, 1, [&](int64_t begin, int64_t end) {
    const RangeWorkspaces::Use use(rooms);
    const auto room = static_cast<size_t>(use.memory() - memory.data()) / 64;
    ASSERT_LT(room, users.size());
    shared += users[room].fetch_add(1) != 0;
    done += end - begin;
    users[room].fetch_sub(1);
  });
  EXPECT_EQ(done, kItems);
  EXPECT_EQ(shared, 0);
}

TEST(RangeWorkspaces, FewerRoomsThanCoresBoundTheLoop) {
  const int before = cpu_cores();
  set_cpu_cores(4);
  std::vector<char> memory(64);
  {
    RangeWorkspaces rooms(memory.data(), 64, 1);
    EXPECT_EQ(current_cores(), 1);
    parallel_for(100, 1, [&](int64_t, int64_t) {
      const RangeWorkspaces::Use use(rooms);
      EXPECT_EQ(use.memory(), memory.data());
    });
  }
  EXPECT_EQ(current_cores(), 4);
  set_cpu_cores(before);
}

TEST(RangeWorkspaces, AsManyAsItemsAndCoresAndAtLeastOne) {
  const int before = cpu_cores();
  set_cpu_cores(100);
  EXPECT_EQ(RangeWorkspaces::count_for(0), 1);
  EXPECT_EQ(RangeWorkspaces::count_for(3), 3);
  EXPECT_EQ(RangeWorkspaces::count_for(1000), 64);
  set_cpu_cores(before);
}

TEST(WorkspaceParts, AreAlignedAndApart) {
  alignas(64) char memory[512];
  WorkspaceParts parts(memory), sizes(nullptr);
  char* a = parts.take<char>(1);
  double* none = parts.take<double>(0);
  float* b = parts.take<float>(17);
  EXPECT_EQ(a, memory);
  EXPECT_EQ(static_cast<void*>(none), memory + 64);
  EXPECT_EQ(static_cast<void*>(b), memory + 64);
  EXPECT_EQ(sizes.take<char>(1), nullptr);
  EXPECT_EQ(sizes.take<double>(0), nullptr);
  EXPECT_EQ(sizes.take<float>(17), nullptr);
  EXPECT_EQ(sizes.bytes(), parts.bytes());
  EXPECT_EQ(parts.bytes(), 64 + 128);
}

}  // namespace
}  // namespace hybridnet::kernels
