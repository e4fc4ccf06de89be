#include "teams/blocks.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <vector>

extern "C" {
void* HNnwm(size_t bytes);
void HNdlPv(void* p) noexcept;
}

namespace hybridnet::teams {
namespace {

TEST(ShortLivedBlocks, ComeAgainOnTheSameThread) {
  const ShortLivedBlocks scope;
  void* const first = HNnwm(100);
  std::memset(first, 1, 512);
  HNdlPv(first);
  EXPECT_EQ(HNnwm(8), first);
  HNdlPv(first);
}

TEST(ShortLivedBlocks, AreGivenWithinAScopeOnlyAndWithinTheirSize) {
  void* block;
  {
    const ShortLivedBlocks scope;
    block = HNnwm(512);
    void* const large = HNnwm(513);
    std::memset(large, 1, 513);
    HNdlPv(block);
    HNdlPv(large);
    EXPECT_EQ(HNnwm(512), block);
    const ShortLivedBlocks inner;
    HNdlPv(block);
  }
  void* const outside = HNnwm(512);
  EXPECT_NE(outside, block);
  ::operator delete(outside);  // like any other block
  HNdlPv(::operator new(16));
  HNdlPv(nullptr);
}

// Takes more blocks than there are: the rest come from the heap.
TEST(ShortLivedBlocks, NeverRunOut) {
  const ShortLivedBlocks scope;
  for (int round = 0; round < 2; ++round) {
    std::set<void*> taken;
    for (int i = 0; i < 10000; ++i) {
      void* const p = HNnwm(64);
      std::memset(p, round, 64);
      EXPECT_TRUE(taken.insert(p).second);
    }
    for (void* const p : taken) HNdlPv(p);
  }
}

TEST(ShortLivedBlocks, MayBeDeletedByAnyThreadAndOutliveTheirs) {
  for (int round = 0; round < 200; ++round) {  // 200 threads with 100 blocks each are more than there are
    std::vector<void*> taken;
    std::thread([&] {
      const ShortLivedBlocks scope;
      for (int i = 0; i < 100; ++i) taken.push_back(HNnwm(200));
    }).join();
    std::thread([&] {
      for (void* const p : taken) HNdlPv(p);
    }).join();
  }
  const ShortLivedBlocks scope;
  void* const block = HNnwm(200);
  void* const heap = ::operator new(200);
  // Blocks are in the memory of the library, near its functions.
  EXPECT_LT(std::abs(static_cast<char*>(block) - reinterpret_cast<char*>(&HNnwm)), 1 << 24);
  EXPECT_GT(std::abs(static_cast<char*>(heap) - reinterpret_cast<char*>(&HNnwm)), 1 << 24);
  HNdlPv(block);
  ::operator delete(heap);
}

// A thread-local destructor may run after the destructors of the thread's blocks.
struct Late {
  void* block = nullptr;
  ~Late() { HNdlPv(block); }
};

TEST(ShortLivedBlocks, MayBeDeletedWhenTheThreadEnds) {
  std::thread([] {
    static thread_local Late late;
    late.block = nullptr;
    const ShortLivedBlocks scope;
    late.block = HNnwm(10);
  }).join();
}

// Blocks work in the child even if other threads were exchanging blocks at the fork: the child must not wait for a lock
// that only they could release.
TEST(ShortLivedBlocks, AreThereInTheChildOfAFork) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer does not follow a fork of a process with threads";
#endif
  const auto take_and_give = [] {
    const ShortLivedBlocks scope;
    std::array<void*, 100> taken;  // more than a thread keeps
    for (void*& p : taken) p = HNnwm(100);
    for (void* const p : taken) HNdlPv(p);
  };
  std::atomic<bool> done{false};
  std::thread other([&] {
    while (!done) take_and_give();
  });
  for (int i = 0; i < 50; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(10);  // ends a child that waits forever
      take_and_give();
      _exit(0);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  done = true;
  other.join();
}

}  // namespace
}  // namespace hybridnet::teams
