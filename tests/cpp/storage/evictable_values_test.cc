// Copies that replace the values of an array: when the values are freed, and when they are restored.
#include "storage/evictable_values.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "hybridnet/runtime.h"
#include "hybridnet/storage.h"

namespace hybridnet {
namespace {

// Memory of an array with the values 0, 1, ..., and a copy of them.
class Array {
 public:
  Array() {
    Runtime::get();
    std::iota(values(), values() + kValues, 0.0f);
  }
  static constexpr size_t kValues = 1 << 16;
  float* values() const { return static_cast<float*>(block_.data()); }
  void offer(int64_t bytes = kBytes) {
    evictable_values.offer({values(), bytes, [this, copy = std::vector<float>(values(), values() + kValues)](void* to) {
                              ++unpacked;
                              std::copy(copy.begin(), copy.end(), static_cast<float*>(to));
                            }});
  }
  void release() { evictable_values.release(memory, pins); }
  bool has_values() const { return values()[kValues / 2] == static_cast<float>(kValues / 2); }

 private:
  static constexpr int64_t kBytes = kValues * sizeof(float);
  const OwnedBlock block_{kBytes};

 public:
  int unpacked = 0;
  void* memory = block_.data();
  std::atomic<int32_t> pins{0};
  EvictableValues evictable_values;
};

TEST(EvictableValues, ValuesAreReleasedAndComeBackToTheSamePlace) {
  Array a;
  a.offer();
  a.evictable_values.accept();
  a.release();
  EXPECT_TRUE(a.evictable_values.is_released());
  EXPECT_EQ(a.memory, nullptr);
  EXPECT_EQ(a.evictable_values.address(), a.values());
  EXPECT_FALSE(a.has_values());
  a.evictable_values.restore(false);
  EXPECT_EQ(a.memory, a.values());
  EXPECT_TRUE(a.has_values());
  a.evictable_values.restore(false);
  EXPECT_EQ(a.unpacked, 1);
}

TEST(EvictableValues, NothingIsReleasedForACopyThatIsNotKept) {
  Array a;
  a.offer();
  a.release();
  EXPECT_TRUE(a.has_values());
  EXPECT_NE(a.memory, nullptr);
}

TEST(EvictableValues, AWriteEndsTheOfferButNotTheReleaseThatItFinds) {
  Array a;
  a.offer();
  a.evictable_values.accept();
  a.evictable_values.withdraw();
  a.release();
  EXPECT_TRUE(a.has_values());
  a.offer();
  a.evictable_values.accept();
  a.release();
  a.evictable_values.withdraw();
  EXPECT_TRUE(a.evictable_values.is_released());
  a.evictable_values.restore(false);
  EXPECT_TRUE(a.has_values());
}

TEST(EvictableValues, PinnedMemoryKeepsItsValues) {
  Array a;
  a.offer();
  a.evictable_values.accept();
  a.pins = 1;
  a.release();
  EXPECT_TRUE(a.has_values());
  EXPECT_EQ(a.memory, a.values());
}

TEST(EvictableValues, MemoryThatStaysIsNeverReleasedAgain) {
  Array a;
  a.offer();
  a.evictable_values.accept();
  a.release();
  a.evictable_values.restore(true);
  EXPECT_TRUE(a.has_values());
  a.offer();
  a.evictable_values.accept();
  EXPECT_FALSE(a.evictable_values.is_accepted());
  a.release();
  EXPECT_TRUE(a.has_values());
}

TEST(EvictableValues, SmallArraysKeepTheirValues) {
  Array a;
  a.offer(EvictableValues::kMinBytes - 1);
  a.evictable_values.accept();
  EXPECT_FALSE(a.evictable_values.is_accepted());
}

TEST(EvictableValues, CountsOffersThatWaitForARelease) {
  EXPECT_FALSE(EvictableValues::any_accepted());
  {
    Array a;
    a.offer();
    EXPECT_FALSE(EvictableValues::any_accepted());
    a.evictable_values.accept();
    EXPECT_TRUE(EvictableValues::any_accepted());
    a.release();
    EXPECT_FALSE(EvictableValues::any_accepted());
    a.evictable_values.restore(false);
    a.offer();
    a.evictable_values.accept();
    EXPECT_TRUE(EvictableValues::any_accepted());
  }
  EXPECT_FALSE(EvictableValues::any_accepted());
}

}  // namespace
}  // namespace hybridnet
