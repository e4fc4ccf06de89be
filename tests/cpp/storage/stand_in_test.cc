// Copies that replace the values of an array: when the values are freed, and when they are restored.
#include "hybridnet/stand_in.h"

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
    stand_in.offer({values(), bytes, [this, copy = std::vector<float>(values(), values() + kValues)](void* to) {
                      ++unpacked;
                      std::copy(copy.begin(), copy.end(), static_cast<float*>(to));
                    }});
  }
  void release() { stand_in.release(memory, pins); }
  bool has_values() const { return values()[kValues / 2] == static_cast<float>(kValues / 2); }

 private:
  static constexpr int64_t kBytes = kValues * sizeof(float);
  const OwnedBlock block_{kBytes};

 public:
  int unpacked = 0;
  void* memory = block_.data();
  std::atomic<int32_t> pins{0};
  StandIn stand_in;
};

TEST(StandIn, ValuesAreReleasedAndComeBackToTheSamePlace) {
  Array a;
  a.offer();
  a.stand_in.accept();
  a.release();
  EXPECT_TRUE(a.stand_in.is_released());
  EXPECT_EQ(a.memory, nullptr);
  EXPECT_EQ(a.stand_in.address(), a.values());
  EXPECT_FALSE(a.has_values());
  a.stand_in.restore(false);
  EXPECT_EQ(a.memory, a.values());
  EXPECT_TRUE(a.has_values());
  a.stand_in.restore(false);
  EXPECT_EQ(a.unpacked, 1);
}

TEST(StandIn, NothingIsReleasedForACopyThatIsNotKept) {
  Array a;
  a.offer();
  a.release();
  EXPECT_TRUE(a.has_values());
  EXPECT_NE(a.memory, nullptr);
}

TEST(StandIn, AWriteEndsTheOfferButNotTheReleaseThatItFinds) {
  Array a;
  a.offer();
  a.stand_in.accept();
  a.stand_in.withdraw();
  a.release();
  EXPECT_TRUE(a.has_values());
  a.offer();
  a.stand_in.accept();
  a.release();
  a.stand_in.withdraw();
  EXPECT_TRUE(a.stand_in.is_released());
  a.stand_in.restore(false);
  EXPECT_TRUE(a.has_values());
}

TEST(StandIn, PinnedMemoryKeepsItsValues) {
  Array a;
  a.offer();
  a.stand_in.accept();
  a.pins = 1;
  a.release();
  EXPECT_TRUE(a.has_values());
  EXPECT_EQ(a.memory, a.values());
}

TEST(StandIn, MemoryThatStaysIsNeverReleasedAgain) {
  Array a;
  a.offer();
  a.stand_in.accept();
  a.release();
  a.stand_in.restore(true);
  EXPECT_TRUE(a.has_values());
  a.offer();
  a.stand_in.accept();
  EXPECT_FALSE(a.stand_in.is_accepted());
  a.release();
  EXPECT_TRUE(a.has_values());
}

TEST(StandIn, SmallArraysKeepTheirValues) {
  Array a;
  a.offer(StandIn::kMinBytes - 1);
  a.stand_in.accept();
  EXPECT_FALSE(a.stand_in.is_accepted());
}

TEST(StandIn, CountsOffersThatWaitForARelease) {
  EXPECT_FALSE(StandIn::any_accepted());
  {
    Array a;
    a.offer();
    EXPECT_FALSE(StandIn::any_accepted());
    a.stand_in.accept();
    EXPECT_TRUE(StandIn::any_accepted());
    a.release();
    EXPECT_FALSE(StandIn::any_accepted());
    a.stand_in.restore(false);
    a.offer();
    a.stand_in.accept();
    EXPECT_TRUE(StandIn::any_accepted());
  }
  EXPECT_FALSE(StandIn::any_accepted());
}

}  // namespace
}  // namespace hybridnet
