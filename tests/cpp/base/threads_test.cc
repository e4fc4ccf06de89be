#include "hybridnet/threads.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <latch>
#include <mutex>
#include <semaphore>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/cores_for_test.h"
#include "teams/team.h"

namespace hybridnet {
namespace {

using testing::CoresForTest;

TEST(ParallelFor, CoversEveryItemOnceInRangesOfAtLeastTheGrain) {
  const CoresForTest cores(4);
  for (int64_t count : {1, 7, 8, 9, 1000, 1001}) {
    std::vector<std::atomic<int>> hits(count);
    std::atomic<int64_t> smallest{count};
    parallel_for(count, 8, [&](int64_t begin, int64_t end) {
      int64_t known = smallest.load();
      while (end - begin < known && !smallest.compare_exchange_weak(known, end - begin)) {
      }
      for (int64_t i = begin; i < end; ++i) ++hits[i];
    });
    for (const auto& hit : hits) EXPECT_EQ(hit.load(), 1);
    EXPECT_GE(smallest.load(), std::min<int64_t>(count, 8));
  }
}

TEST(ParallelFor, DoesNothingForNothing) {
  parallel_for(0, 1, [](int64_t, int64_t) { FAIL(); });
}

TEST(ParallelFor, RunsRangesAtTheSameTimeOnSeveralThreads) {
  const CoresForTest cores(3);
  std::latch all_started(3);
  std::atomic<int> ranges{0};
  parallel_for(3, 1, [&](int64_t, int64_t) {
    ++ranges;
    all_started.arrive_and_wait();  // passes only if three ranges run in parallel
  });
  EXPECT_EQ(ranges.load(), 3);
}

TEST(ParallelFor, AThreadThatIsDoneTakesPartsOfTheOthers) {
  const CoresForTest cores(2);
  std::mutex mutex;
  std::array<std::thread::id, 8> runners;
  parallel_for(8, 1, [&](int64_t begin, int64_t) {
    if (begin < 4) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const std::lock_guard lock(mutex);
    runners[static_cast<size_t>(begin)] = std::this_thread::get_id();
  });
  EXPECT_NE(std::count(runners.begin(), runners.begin() + 4, runners[0]), 4);
}

TEST(ParallelFor, NestedLoopsRunOnTheirThreadAlone) {
  const CoresForTest cores(4);
  std::atomic<bool> alone{true};
  parallel_for(4, 1, [&](int64_t, int64_t) {
    if (current_cores() != 1) alone = false;
    const auto thread = std::this_thread::get_id();
    parallel_for(100, 1, [&](int64_t begin, int64_t end) {
      if (std::this_thread::get_id() != thread || begin != 0 || end != 100) alone = false;
    });
  });
  EXPECT_TRUE(alone.load());
  EXPECT_EQ(current_cores(), 4);
}

TEST(ParallelFor, FirstExceptionReachesTheCallerAndTheTeamIsUsableAfter) {
  const CoresForTest cores(4);
  for (int round = 0; round < 3; ++round) {
    EXPECT_THROW(parallel_for(100, 1, [](int64_t, int64_t) { throw std::runtime_error("inside"); }),
                 std::runtime_error);
  }
  std::atomic<int64_t> sum{0};
  parallel_for(100, 1, [&](int64_t begin, int64_t end) { sum += end - begin; });
  EXPECT_EQ(sum.load(), 100);
  EXPECT_EQ(current_cores(), 4);
}

TEST(CoreLease, TakesWhatIsFreeAndAtLeastOne) {
  const CoresForTest cores(4);
  const CoreLease first(3);
  EXPECT_EQ(first.cores(), 3);
  EXPECT_EQ(current_cores(), 3);
  std::array<int, 2> seen{};
  std::thread([&] {
    const CoreLease second(4);
    seen[0] = second.cores();
    std::thread([&] { seen[1] = CoreLease(2).cores(); }).join();
  }).join();
  EXPECT_EQ(seen[0], 1);  // the fourth core
  EXPECT_EQ(seen[1], 1);  // no free core left: only its own thread
}

TEST(CoreLease, OfAThreadThatFoundNoneFreeCountsToo) {
  const CoresForTest cores(2);
  std::binary_semaphore leased(0), seen(0);
  std::thread second;
  {
    const CoreLease both(2);
    second = std::thread([&] {
      const CoreLease lease(2);
      EXPECT_EQ(lease.cores(), 1);
      leased.release();
      seen.acquire();
    });
    leased.acquire();
  }
  EXPECT_EQ(free_cores(), 1);
  seen.release();
  second.join();
  EXPECT_EQ(free_cores(), 2);
}

TEST(CoreLease, ComesBackWhenItEnds) {
  const CoresForTest cores(4);
  for (int round = 0; round < 10; ++round) {
    const CoreLease lease(4);
    EXPECT_EQ(lease.cores(), 4);
  }
}

TEST(CoreLease, InsideALeaseIsPartOfIt) {
  const CoresForTest cores(4);
  const CoreLease outer(2);
  {
    const CoreLease inner(4);
    EXPECT_EQ(inner.cores(), 2);
  }
  int others = 0;
  std::thread([&] { others = CoreLease(4).cores(); }).join();
  EXPECT_EQ(others, 2);
}

TEST(CoreScope, BoundsAndRestores) {
  const CoresForTest cores(4);
  {
    const CoreScope two(2);
    EXPECT_EQ(current_cores(), 2);
    const CoreScope one(1);
    EXPECT_EQ(current_cores(), 1);
  }
  EXPECT_EQ(current_cores(), 4);
}

TEST(Threads, UnscopedLoopsShareTheBudget) {
  const CoresForTest cores(4);
  const CoreLease most(3);
  int parts = 0;
  std::thread([&] {
    std::mutex mutex;
    parallel_for(100, 1, [&](int64_t, int64_t) {
      const std::lock_guard lock(mutex);
      ++parts;
    });
  }).join();
  EXPECT_EQ(parts, 1);
}

TEST(Threads, AForkedChildRunsLoopsAfterItsParentUsedATeam) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer does not follow threads that start after a fork";
#endif
  const CoresForTest cores(4);
  std::atomic<int64_t> warm{0};
  parallel_for(100, 1, [&](int64_t begin, int64_t end) { warm += end - begin; });
  const pid_t child = fork();
  if (child == 0) {
    threads_after_fork_in_child();
    int64_t sum = 0;  // not atomic: the forked thread must run alone
    parallel_for(100, 1, [&](int64_t begin, int64_t end) { sum += end - begin; });
    std::atomic<int64_t> other{0};
    std::thread([&] { parallel_for(100, 1, [&](int64_t begin, int64_t end) { other += end - begin; }); }).join();
    _exit(sum == 100 && other.load() == 100 && current_cores() == 1 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace hybridnet
