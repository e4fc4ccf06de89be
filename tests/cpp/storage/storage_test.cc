#include "hybridnet/storage.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <future>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "hybridnet/error.h"
#include "storage/size_class.h"

namespace hybridnet {
namespace {

constexpr int64_t kMiB = 1 << 20;

TEST(SizeClass, ServesEveryRequestWithLittleWaste) {
  for (int64_t bytes = 1; bytes <= kClassLimit; bytes += 1 + bytes / 97) {
    const int64_t size = rounded_bytes(bytes);
    ASSERT_GE(size, bytes);
    ASSERT_LE(size, bytes <= kFineLimit ? bytes + kAlignment - 1 : bytes + bytes / 4);
    ASSERT_EQ(size % kAlignment, 0);
    ASSERT_EQ(rounded_bytes(size), size);
  }
  for (int c = 0; c < kClasses; ++c) {
    ASSERT_EQ(size_class(class_bytes(c)), c);
    if (c > 0) {
      ASSERT_EQ(size_class(class_bytes(c - 1) + 1), c);
    }
  }
  EXPECT_EQ(rounded_bytes(kClassLimit + 1), kClassLimit + kHugeStep);
}

TEST(Storage, BlocksAreAlignedWritableAndDisjoint) {
  const auto storage = make_cpu_storage(-1);
  std::vector<Storage::Block> blocks;
  for (int64_t bytes :
       {int64_t{1}, int64_t{64}, int64_t{65}, int64_t{5000}, int64_t{70'000}, kMiB, 5 * kMiB, 65 * kMiB}) {
    for (int i = 0; i < 2; ++i) {
      blocks.push_back(storage->allocate(bytes));
      const Storage::Block& block = blocks.back();
      EXPECT_GE(block.bytes, bytes);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(block.data) % 64, 0u);
      EXPECT_EQ(block.device, Device{});
      std::memset(block.data, static_cast<int>(blocks.size()), block.bytes);
    }
  }
  for (size_t i = 0; i < blocks.size(); ++i) {
    const auto* bytes = static_cast<const unsigned char*>(blocks[i].data);
    EXPECT_EQ(bytes[0], i + 1);
    EXPECT_EQ(bytes[blocks[i].bytes - 1], i + 1);
    storage->free(blocks[i]);
  }
}

TEST(Storage, NothingIsAValidBlock) {
  const auto storage = make_cpu_storage(-1);
  const Storage::Block block = storage->allocate(0);
  EXPECT_EQ(block.data, nullptr);
  EXPECT_EQ(block.bytes, 0);
  storage->free(block);
  EXPECT_EQ(storage->statistics().allocations, 0);
  EXPECT_THROW(storage->allocate(-1), ValueError);
}

TEST(Storage, FreedBlocksServeLaterRequests) {
  const auto storage = make_cpu_storage(-1);
  for (int64_t bytes : {int64_t{100}, int64_t{30'000}, int64_t{500'000}, 10 * kMiB, 100 * kMiB}) {
    const Storage::Block first = storage->allocate(bytes);
    storage->free(first);
    const int64_t before = storage->statistics().system_allocations;
    const Storage::Block second = storage->allocate(bytes);
    EXPECT_EQ(second.data, first.data);
    EXPECT_EQ(storage->statistics().system_allocations, before);
    storage->free(second);
  }
}

TEST(Storage, ALargeRequestIsServedByASlightlyLargerBlock) {
  const auto storage = make_cpu_storage(-1);
  const Storage::Block large = storage->allocate(10 * kMiB);
  storage->free(large);
  const Storage::Block smaller = storage->allocate(9 * kMiB);
  EXPECT_EQ(smaller.data, large.data);
  EXPECT_EQ(smaller.bytes, large.bytes);
  storage->free(smaller);
  const Storage::Block much_smaller = storage->allocate(5 * kMiB);
  EXPECT_NE(much_smaller.data, large.data);
  storage->free(much_smaller);
}

// The test does not write to these blocks, so that they take no physical memory.
TEST(Storage, HugeBlocksThatAProgramOutgrewGoBackToTheSystem) {
  const auto storage = make_cpu_storage(-1);
  int64_t last = 0;
  for (int64_t bytes = 100 * kMiB; bytes < 2000 * kMiB; bytes = bytes * 3 / 2) {
    const Storage::Block block = storage->allocate(bytes);
    EXPECT_EQ(storage->statistics().pooled, 0);
    last = block.bytes;
    storage->free(block);
  }
  EXPECT_EQ(storage->statistics().pooled, last);
  const Storage::Block both[] = {storage->allocate(last),
                                 storage->allocate(100 * kMiB)};  // no block is returned to the system
  for (const Storage::Block& block : both) storage->free(block);
  EXPECT_EQ(storage->statistics().pooled, both[0].bytes + both[1].bytes);
  storage->release_pool();
  EXPECT_EQ(storage->statistics().pooled, 0);
}

TEST(Storage, HugeBlocksOfSizesThatRepeatStay) {
  const auto storage = make_cpu_storage(-1);
  const auto round = [&] {
    for (const int64_t size : {150, 500, 100, 220, 330}) storage->free(storage->allocate(size * kMiB));
  };
  for (int i = 0; i < 6; ++i) round();
  const int64_t before = storage->statistics().system_allocations;
  for (int i = 0; i < 6; ++i) round();
  EXPECT_EQ(storage->statistics().system_allocations, before);
}

TEST(Storage, StatisticsCountBytesOfEveryThread) {
  const auto storage = make_cpu_storage(-1);
  const Storage::Block small = storage->allocate(1000);
  const Storage::Block large = storage->allocate(kMiB);
  EXPECT_EQ(storage->statistics().in_use, small.bytes + large.bytes);
  EXPECT_EQ(storage->statistics().allocations, 2);
  EXPECT_EQ(storage->statistics().system_allocations, 2);
  EXPECT_EQ(storage->statistics().pooled, 0);
  // Freed by another thread, which then ends.
  std::thread([&] {
    storage->free(small);
    EXPECT_EQ(storage->statistics().in_use, large.bytes);
    EXPECT_EQ(storage->statistics().pooled, small.bytes);
    storage->free(large);
  }).join();
  EXPECT_EQ(storage->statistics().in_use, 0);
  EXPECT_EQ(storage->statistics().pooled, small.bytes + large.bytes);
  EXPECT_EQ(storage->statistics().peak_in_use, small.bytes + large.bytes);
  storage->reset_peak();
  EXPECT_EQ(storage->statistics().peak_in_use, 0);
  storage->release_pool();
  EXPECT_EQ(storage->statistics().pooled, 0);
}

TEST(Storage, TheCacheOfAnEndedThreadServesOthers) {
  const auto storage = make_cpu_storage(-1);
  std::set<void*> addresses;
  std::thread([&] {
    std::vector<Storage::Block> blocks;
    for (int i = 0; i < 20; ++i) blocks.push_back(storage->allocate(256));
    for (const Storage::Block& block : blocks) {
      addresses.insert(block.data);
      storage->free(block);
    }
  }).join();
  const Storage::Block block = storage->allocate(256);
  EXPECT_TRUE(addresses.contains(block.data));
  EXPECT_EQ(storage->statistics().system_allocations, 20);
  storage->free(block);
}

TEST(Storage, ReleasePoolEmptiesTheCachesOfOtherThreadsToo) {
  const auto storage = make_cpu_storage(-1);
  std::promise<void> cached, released;
  std::thread other([&] {
    storage->free(storage->allocate(256));
    cached.set_value();
    released.get_future().wait();
    storage->free(storage->allocate(256));  // its cache still works
  });
  cached.get_future().wait();
  EXPECT_GT(storage->statistics().pooled, 0);
  storage->release_pool();
  EXPECT_EQ(storage->statistics().pooled, 0);
  released.set_value();
  other.join();
  EXPECT_EQ(storage->statistics().system_allocations, 2);
}

TEST(Storage, MemoryAboveThePoolLimitGoesBackToTheSystem) {
  const auto storage = make_cpu_storage(4 * kMiB);
  std::vector<Storage::Block> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(storage->allocate(kMiB));
  for (const Storage::Block& block : blocks) storage->free(block);
  EXPECT_EQ(storage->statistics().pooled, 4 * kMiB);
  const auto none = make_cpu_storage(0);
  for (int64_t bytes : {int64_t{100}, kMiB}) {
    none->free(none->allocate(bytes));
    EXPECT_EQ(none->statistics().pooled, 0);
  }
}

TEST(Storage, ARequestThatCannotBeServedSaysWhatIsInUse) {
  const auto storage = make_cpu_storage(-1);
  const Storage::Block block = storage->allocate(3 * kMiB);
  for (int64_t bytes : {INT64_MAX, INT64_MAX / 4}) {
    try {
      storage->allocate(bytes);
      FAIL() << "no error";
    } catch (const OutOfMemoryError& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("cannot allocate " + std::to_string(bytes)), std::string::npos) << text;
      EXPECT_NE(text.find("Because: 3 MiB are in use"), std::string::npos) << text;
    }
  }
  storage->free(block);
}

TEST(Storage, BlocksMayBeFreedWhileTheirThreadEnds) {
  const auto storage = make_cpu_storage(-1);
  struct FreesLate {
    Storage* storage;
    Storage::Block block;
    ~FreesLate() { storage->free(block); }
  };
  std::thread([&] {
    // Made before this thread's first allocation, so destroyed after its cache.
    static thread_local std::unique_ptr<FreesLate> late;
    late = nullptr;
    const Storage::Block block = storage->allocate(128);
    late = std::make_unique<FreesLate>(storage.get(), block);
  }).join();
  EXPECT_EQ(storage->statistics().in_use, 0);
}

TEST(Storage, StoragesDoNotMix) {
  const auto first = make_cpu_storage(-1);
  auto second = make_cpu_storage(-1);
  const Storage::Block a = first->allocate(64);
  const Storage::Block b = second->allocate(64);
  first->free(a);
  EXPECT_EQ(first->statistics().in_use, 0);
  EXPECT_EQ(second->statistics().in_use, 64);
  second->free(b);
  second.reset();
  const auto third = make_cpu_storage(-1);
  EXPECT_EQ(third->statistics().pooled, 0);
  third->free(third->allocate(64));
  EXPECT_EQ(third->statistics().pooled, 64);
}

TEST(StorageStress, ThreadsExchangeBlocksOfAllSizes) {
  const auto storage = make_cpu_storage(-1);
  constexpr int kThreads = 4, kSteps = 20'000, kShared = 64;
  std::vector<std::atomic<uint64_t*>> shared(kShared);
  std::atomic<bool> intact{true};
  std::vector<std::thread> threads;
  auto free_block = [&](uint64_t* data) {
    if (data == nullptr) return;
    const auto bytes = static_cast<int64_t>(data[0]);
    if (data[1] != (reinterpret_cast<uint64_t>(data) ^ data[0])) intact = false;
    storage->free({.data = data, .bytes = bytes, .device = {}});
  };
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      for (int i = 0; i < kSteps; ++i) {
        const Storage::Block block = storage->allocate(16 + static_cast<int64_t>(random() % (1u << random() % 18)));
        auto* data = static_cast<uint64_t*>(block.data);
        data[0] = static_cast<uint64_t>(block.bytes);
        data[1] = reinterpret_cast<uint64_t>(data) ^ data[0];
        free_block(shared[random() % kShared].exchange(data));
        if (random() % 4000 == 0) storage->release_pool();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (auto& slot : shared) free_block(slot.load());
  EXPECT_TRUE(intact.load());
  EXPECT_EQ(storage->statistics().in_use, 0);
  EXPECT_EQ(storage->statistics().allocations, kThreads * kSteps);
}

#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)  // their runtimes hold additional memory
int64_t resident_bytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  long long total = 0, resident = 0;
  const bool read = std::fscanf(file, "%lld %lld", &total, &resident) == 2;
  std::fclose(file);
  return read ? resident * sysconf(_SC_PAGESIZE) : -1;
}

TEST(Storage, ReleasePoolReturnsMemoryToTheSystem) {
  const auto storage = make_cpu_storage(-1);
  const int64_t before = resident_bytes();
  std::vector<Storage::Block> blocks;
  for (int64_t bytes : {int64_t{1000}, int64_t{50'000}, int64_t{600'000}, 6 * kMiB, 80 * kMiB}) {
    for (int64_t total = 0; total < 80 * kMiB; total += bytes) {
      blocks.push_back(storage->allocate(bytes));
      std::memset(blocks.back().data, 1, blocks.back().bytes);
    }
  }
  EXPECT_GT(resident_bytes() - before, 350 * kMiB);
  for (const Storage::Block& block : blocks) storage->free(block);
  blocks = {};
  EXPECT_GT(resident_bytes() - before, 350 * kMiB);
  storage->release_pool();
  EXPECT_LT(resident_bytes() - before, 8 * kMiB);
}

// 9 MiB are allocated as a block of 10 MiB: the part in the last, half used huge page has small pages.
TEST(Storage, OfALargeBlockOnlyWhatWasAskedForBecomesResident) {
  const auto storage = make_cpu_storage(-1);
  for (const int64_t asked : {9 * kMiB, 4 * kMiB + 5000, 33 * kMiB + 1, 65 * kMiB}) {
    const int64_t before = resident_bytes();
    std::vector<Storage::Block> blocks;
    for (int i = 0; i < 8; ++i) {
      blocks.push_back(storage->allocate(asked));
      std::memset(blocks.back().data, 1, static_cast<size_t>(asked));
    }
    EXPECT_LE(resident_bytes() - before, 8 * asked + 8 * asked / 32 + kMiB) << asked;
    for (const Storage::Block& block : blocks) storage->free(block);
    storage->release_pool();
  }
}

TEST(Storage, ALaterUseOfALargeBlockMayTouchAllOfIt) {
  const auto storage = make_cpu_storage(-1);
  const Storage::Block smaller = storage->allocate(9 * kMiB);
  std::memset(smaller.data, 1, 9 * kMiB);
  storage->free(smaller);
  const Storage::Block larger = storage->allocate(10 * kMiB);
  ASSERT_EQ(larger.data, smaller.data);
  std::memset(larger.data, 2, 10 * kMiB);
  storage->free(larger);
}

TEST(Storage, AForkedChildHasAWorkingPool) {
  const auto storage = make_cpu_storage(-1);
  const Storage::Block block = storage->allocate(1000);
  std::promise<void> begun, over;
  std::thread other([&] {
    storage->free(storage->allocate(128));
    begun.set_value();
    over.get_future().wait();
  });
  begun.get_future().wait();
  storage->before_fork();
  const pid_t child = fork();
  storage->after_fork(child == 0);
  if (child == 0) {
    storage->free(block);
    storage->free(storage->allocate(5000));
    storage->release_pool();
    _exit(storage->statistics().in_use == 0 ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  over.set_value();
  other.join();
  EXPECT_EQ(storage->statistics().in_use, block.bytes);
  storage->free(block);
}
#endif

}  // namespace
}  // namespace hybridnet
