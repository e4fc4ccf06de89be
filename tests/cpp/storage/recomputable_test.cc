// Arrays that can be recomputed: when their memory is freed, and when it is filled.
#include "storage/recomputable.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "hybridnet/runtime.h"
#include "storage/derived.h"

namespace hybridnet {
namespace {

constexpr size_t kValues = 1 << 16;

// Array i holds i, i + 1, ...
class Ranges final : public RecomputableArrays {
 public:
  explicit Ranges(size_t count) {
    Runtime::get();
    for (size_t i = 0; i < count; ++i) {
      blocks_.push_back(std::make_unique<OwnedBlock>(static_cast<int64_t>(kValues * sizeof(float))));
      fill(i);
      add(blocks_[i]->data(), static_cast<int64_t>(kValues * sizeof(float)));
    }
  }
  float* values(size_t i) const { return static_cast<float*>(blocks_[i]->data()); }
  float middle(size_t i) const { return values(i)[kValues / 2]; }
  bool is_dropped(size_t i) const { return middle(i) == 0; }
  static float expected(size_t i) { return static_cast<float>(i + kValues / 2); }

 private:
  void fill(size_t i) const { std::iota(values(i), values(i) + kValues, static_cast<float>(i)); }
  void compute(const std::vector<size_t>& arrays) override {
    for (const size_t i : arrays) fill(i);
  }
  std::vector<std::unique_ptr<OwnedBlock>> blocks_;
};

TEST(RecomputableArrays, AReaderFindsTheValuesOfADroppedArray) {
  Ranges ranges(2);
  ranges.drop(0);
  EXPECT_TRUE(ranges.is_dropped(0));
  EXPECT_EQ(ranges.middle(1), Ranges::expected(1));
  ranges.begin_reading(0);
  EXPECT_EQ(ranges.middle(0), Ranges::expected(0));
  ranges.drop(0);  // no effect while it is read
  EXPECT_EQ(ranges.middle(0), Ranges::expected(0));
  ranges.end_reading(0);
  ranges.drop(0);
  EXPECT_TRUE(ranges.is_dropped(0));
  EXPECT_EQ(ranges.num_computed(), 1u);
}

TEST(RecomputableArrays, OneComputationServesAllAndWhatNobodyAskedForIsDroppedAgain) {
  Ranges ranges(3);
  for (size_t i = 0; i < 3; ++i) ranges.drop(i);
  ranges.begin_reading(1);
  ranges.begin_reading(2);
  ranges.end_reading(2);
  EXPECT_EQ(ranges.num_computed(), 1u);
  ranges.drop_again();
  EXPECT_TRUE(ranges.is_dropped(0));
  EXPECT_TRUE(ranges.is_dropped(2));
  EXPECT_EQ(ranges.middle(1), Ranges::expected(1));
  ranges.end_reading(1);
}

TEST(RecomputableArrays, AKeptArrayStays) {
  Ranges ranges(1);
  ranges.drop(0);
  ranges.keep(0);
  EXPECT_TRUE(ranges.is_kept(0));
  ranges.drop(0);
  ranges.drop_again();
  EXPECT_EQ(ranges.middle(0), Ranges::expected(0));
}

TEST(RecomputableArrays, ACopyThatIsKeptDropsItsSourceAndAnotherOneFindsIt) {
  Ranges ranges(1);
  DerivedData derived;
  derived.set_recomputable(ranges, 0);
  const DerivedSource source{ranges.values(0), &derived};
  const auto middle = [&] { return std::make_shared<const float>(ranges.middle(0)); };
  DerivedUser<float> one("one"), other("other");
  EXPECT_EQ(*one.get({&source, 1}, 4, middle), Ranges::expected(0));
  EXPECT_TRUE(ranges.is_dropped(0));
  EXPECT_EQ(*other.get({&source, 1}, 4, middle), Ranges::expected(0));
  EXPECT_TRUE(ranges.is_dropped(0));
  EXPECT_EQ(*one.get({&source, 1}, 4, middle), Ranges::expected(0));
  EXPECT_EQ(ranges.num_computed(), 1u);
}

TEST(RecomputableArrays, WhereNoCopyIsKeptTheSourceStays) {
  Ranges ranges(1);
  DerivedData derived;
  derived.set_recomputable(ranges, 0);
  const DerivedSource source{ranges.values(0), &derived};
  DerivedBudget& budget = Runtime::get().storage({}).derived_budget();
  const int64_t limit = budget.limit();
  budget.set_limit(budget.bytes());
  DerivedUser<float> user("refused");
  for (int i = 0; i < 3; ++i)
    user.get({&source, 1}, 1 << 20, [&] { return std::make_shared<const float>(ranges.middle(0)); });
  budget.set_limit(limit);
  EXPECT_EQ(ranges.middle(0), Ranges::expected(0));
  EXPECT_EQ(ranges.num_computed(), 0u);
}

TEST(RecomputableArrays, ReadersOfManyThreadsNeverFindAnArrayDropped) {
  Ranges ranges(4);
  std::atomic<bool> wrong{false};
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (size_t round = 0; round < 200; ++round) {
        const size_t i = (t + round) % 4;
        ranges.begin_reading(i);
        if (ranges.middle(i) != Ranges::expected(i)) wrong = true;
        ranges.end_reading(i);
        ranges.drop((i + 1) % 4);
        if (round % 8 == 0) ranges.drop_again();
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE(wrong);
}

}  // namespace
}  // namespace hybridnet
