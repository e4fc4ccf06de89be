// Copies derived from arrays: when they are shared, and when they are dropped.
#include "storage/derived.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <thread>

#include "hybridnet/ndarray.h"
#include "hybridnet/runtime.h"

namespace hybridnet {
namespace {

// The bytes of kept copies, without the copies left by other tests.
class Kept {
 public:
  int64_t bytes() const { return budget_.bytes() - before_; }

 private:
  DerivedBudget& budget_ = Runtime::get().storage({}).derived_budget();
  const int64_t before_ = budget_.bytes();
};

class Limit {
 public:
  explicit Limit(int64_t more) { budget_.set_limit(budget_.bytes() + more); }
  ~Limit() { budget_.set_limit(before_); }

 private:
  DerivedBudget& budget_ = Runtime::get().storage({}).derived_budget();
  const int64_t before_ = budget_.limit();
};

NDArray array() {
  Runtime::get();
  return NDArray::empty(Shape{4}, DType::kFloat32);
}

DerivedSource source(const NDArray& a) { return {a.data(), a.impl()->chunk->derived()}; }

// A user of derived data that counts how often its value is made.
class User {
 public:
  explicit User(const std::string& recipe, int64_t bytes = 100) : bytes_(bytes), user_(recipe) {}
  std::shared_ptr<const int> get(const std::vector<NDArray>& arrays) {
    std::vector<DerivedSource> sources;
    for (const NDArray& a : arrays) sources.push_back(source(a));
    return user_.get(sources, bytes_, [this] { return std::make_shared<const int>(++made); });
  }
  DerivedUser<int>::Use use(ReaderCache& reader, const NDArray& a) {
    const DerivedSource from = source(a);
    return user_.get(&reader, {&from, 1}, bytes_, [this] { return std::make_shared<const int>(++made); });
  }
  int made = 0;

 private:
  const int64_t bytes_;
  DerivedUser<int> user_;
};

void write(const NDArray& a) {
  const std::array<float, 4> values{1, 2, 3, 4};
  a.copy_from(values.data());
}

TEST(DerivedData, OneCopyServesAllUsersOfArrayAndRecipe) {
  const Kept kept;
  const NDArray a = array(), b = array();
  User first("shared"), second("shared"), other("another recipe");
  const auto value = first.get({a});
  EXPECT_EQ(first.get({a}), value);
  EXPECT_EQ(second.get({a}), value);
  EXPECT_EQ(second.made, 0);
  EXPECT_EQ(kept.bytes(), 100);
  EXPECT_NE(other.get({a}), value);
  EXPECT_NE(second.get({b}), value);
  EXPECT_EQ(kept.bytes(), 300);
}

TEST(DerivedData, AWriteDropsTheCopy) {
  const Kept kept;
  const NDArray a = array();
  User user("written"), second("written");
  user.get({a});
  second.get({a});
  EXPECT_EQ(kept.bytes(), 100);
  write(a);
  EXPECT_EQ(kept.bytes(), 0);
  user.get({a});
  EXPECT_EQ(user.made, 2);
  second.get({a});
  EXPECT_EQ(second.made, 0);
  write(a);
  write(a);
  EXPECT_EQ(kept.bytes(), 0);
}

TEST(DerivedData, TheLastUserTakesTheCopyAlong) {
  const Kept kept;
  const NDArray a = array();
  {
    User first("used");
    first.get({a});
    {
      User second("used");
      second.get({a});
    }
    EXPECT_EQ(kept.bytes(), 100);
  }
  EXPECT_EQ(kept.bytes(), 0);
}

TEST(DerivedData, ACopyDiesWithItsArray) {
  const Kept kept;
  User user("outlives");
  user.get({array()});
  EXPECT_EQ(kept.bytes(), 0);
  user.get({array()});  // may have the same address
  EXPECT_EQ(user.made, 2);
}

TEST(DerivedData, ACopyOfSeveralArraysDependsOnEach) {
  const Kept kept;
  const NDArray a = array(), b = array();
  User user("of two"), second("of two");
  for (const NDArray& written : {a, b}) {
    user.get({a, b});
    second.get({a, b});
    EXPECT_EQ(kept.bytes(), 100);
    write(written);
    EXPECT_EQ(kept.bytes(), 0);
  }
  EXPECT_EQ(user.made, 2);
  EXPECT_EQ(second.made, 0);
  user.get({b, a});
  EXPECT_EQ(user.made, 3);
}

TEST(DerivedData, OneUserKeepsACopyOfEachArray) {
  const Kept kept;
  User user("of each");
  std::vector<NDArray> arrays;
  for (int i = 0; i < 100; ++i) arrays.push_back(array());
  for (int round = 0; round < 3; ++round) {
    for (const NDArray& a : arrays) user.get({a});
  }
  EXPECT_EQ(user.made, 100);
  EXPECT_EQ(kept.bytes(), 100 * 100);
  write(arrays[7]);
  EXPECT_EQ(kept.bytes(), 99 * 100);
  arrays.resize(50);
  EXPECT_EQ(kept.bytes(), 49 * 100);
  for (int i = 0; i < 1000; ++i) user.get({array()});  // short-lived arrays leave no copies behind
  EXPECT_EQ(kept.bytes(), 49 * 100);
}

TEST(DerivedData, NothingIsKeptOfForeignMemory) {
  const Kept kept;
  std::array<float, 4> values{};
  Runtime::get();
  const NDArray foreign = NDArray::from_memory(values.data(), {Shape{4}, DType::kFloat32}, nullptr);
  User user("foreign");
  user.get({foreign});
  user.get({foreign});
  EXPECT_EQ(user.made, 2);
  EXPECT_EQ(kept.bytes(), 0);
}

TEST(ReaderCache, GivesTheValueOfItsLastUseUntilTheArrayIsWritten) {
  const Kept kept;
  const NDArray a = array();
  User user("read");
  ReaderCache reader;
  for (int write_number = 1; write_number < 4; ++write_number) {
    for (int use = 0; use < 3; ++use) EXPECT_EQ(*user.use(reader, a), write_number);
    EXPECT_EQ(kept.bytes(), 100);
    write(a);
    EXPECT_EQ(kept.bytes(), 0);  // the copy is freed although the reader was idle
  }
}

TEST(ReaderCache, HoldsTheValueOfTheArrayThatWasReadLast) {
  const Kept kept;
  NDArray a = array();
  const NDArray b = array();
  User user("read in turns");
  ReaderCache reader;
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(*user.use(reader, a), 1);
    EXPECT_EQ(*user.use(reader, b), 2);
  }
  a = NDArray();
  EXPECT_EQ(kept.bytes(), 100);
  write(b);
  EXPECT_EQ(kept.bytes(), 0);
}

TEST(ReaderCache, OverlappingUsesDoWithout) {
  const Kept kept;
  const NDArray a = array(), b = array();
  User user("overlap");
  ReaderCache reader;
  auto first = user.use(reader, a);
  const auto second = user.use(reader, a), other = user.use(reader, b);
  EXPECT_EQ(*second, 1);
  EXPECT_EQ(*other, 2);
  first = user.use(reader, b);
  EXPECT_EQ(*first, 2);
  EXPECT_EQ(*user.use(reader, a), 1);
}

TEST(ReaderCache, AValueInUseOutlivesItsCopy) {
  const Kept kept;
  ReaderCache reader;
  User user("outlived");
  {
    const NDArray a = array();
    auto use = user.use(reader, a);
    a.impl()->chunk->derived()->drop();
    EXPECT_EQ(kept.bytes(), 0);
    EXPECT_EQ(*use, 1);
    auto moved = std::move(use);
    EXPECT_FALSE(use);
    EXPECT_EQ(*moved, 1);
  }
  EXPECT_EQ(*user.use(reader, array()), 2);
}

TEST(ReaderCache, MakesRoomWhenItsCopyIsNoLongerUsed) {
  const Kept kept;
  const Limit limit(150);
  const NDArray a = array();
  User first("1"), second("2");
  ReaderCache reader;
  EXPECT_EQ(*first.use(reader, a), 1);
  second.get({a});
  second.get({a});
  EXPECT_EQ(kept.bytes(), 100);  // the copy of the second
  EXPECT_EQ(*first.use(reader, a), 2);
  EXPECT_EQ(*first.use(reader, a), 3);  // the budget was full: no copy was kept; now it has the second's space
  EXPECT_EQ(*first.use(reader, a), 3);
}

TEST(ReaderCache, IsDroppedByOneThreadWhileAnotherUsesIt) {
  const Kept kept;
  constexpr int kThreads = 3, kRounds = 20000;
  const NDArray a = array();
  DerivedUser<std::array<int, 2>> pairs("pairs");
  std::atomic<bool> done{false};
  std::atomic<int> wrong{0};
  std::thread dropper([&] {
    while (!done) a.impl()->chunk->derived()->drop();
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      ReaderCache reader;
      for (int i = 0; i < kRounds; ++i) {
        const DerivedSource from = source(a);
        const auto use = pairs.get(&reader, {&from, 1}, 8, [i] {
          return std::make_shared<const std::array<int, 2>>(std::array<int, 2>{i, ~i});
        });
        if ((*use)[0] != ~(*use)[1]) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  done = true;
  dropper.join();
  EXPECT_EQ(wrong, 0);
  a.impl()->chunk->derived()->drop();
  EXPECT_EQ(kept.bytes(), 0);
}

TEST(DerivedBudget, HoldsAndGivesSameValues) {
  const Kept kept;
  const Limit limit(250);
  const NDArray a = array();
  User first("1"), second("2"), third("3");
  for (int i = 0; i < 4; ++i) {
    for (User* user : {&first, &second, &third}) user->get({a});
    EXPECT_LE(kept.bytes(), 250);
  }
  EXPECT_EQ(first.made, 1);
  EXPECT_EQ(second.made, 1);
  EXPECT_EQ(third.made, 4);  // the budget is full, and the other copies are in use
}

TEST(DerivedBudget, CopiesThatAreNoLongerUsedMakeRoom) {
  const Kept kept;
  const Limit limit(250);
  const NDArray a = array();
  User first("1"), second("2"), third("3");
  first.get({a});
  second.get({a});
  third.get({a});
  EXPECT_EQ(third.made, 1);
  second.get({a});
  third.get({a});  // replaces the copy of the first
  third.get({a});
  EXPECT_EQ(third.made, 2);
  EXPECT_EQ(kept.bytes(), 200);
  second.get({a});
  EXPECT_EQ(second.made, 1);
  first.get({a});
  EXPECT_EQ(first.made, 2);
}

TEST(DerivedBudget, WhatIsLargerThanTheLimitDropsNothing) {
  const Kept kept;
  const Limit limit(250);
  const NDArray a = array();
  User small("small"), large("large", 1000);
  small.get({a});
  large.get({a});
  large.get({a});
  EXPECT_EQ(large.made, 2);
  EXPECT_EQ(kept.bytes(), 100);
}

TEST(DerivedData, ThreadsShareACopyWhileOthersAreDropped) {
  const Kept kept;
  constexpr int kThreads = 4, kRounds = 2000;
  const NDArray shared = array();
  std::atomic<int> made{0}, wrong{0};
  {
    User holder("held");
    const auto expected = holder.get({shared});
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        const NDArray own = array();
        for (int i = 0; i < kRounds; ++i) {
          User user("held"), churn("churn " + std::to_string(i % 3));
          if (user.get({shared}) != expected) ++wrong;
          made += user.made;
          if (*churn.get({own, shared}) != 1) ++wrong;
          if (i % 5 == t) write(own);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(made, 0);
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(kept.bytes(), 0);
}

TEST(DerivedBudget, HoldsWhenThreadsCompeteForRoom) {
  const Kept kept;
  const Limit limit(250);
  constexpr int kThreads = 4, kRounds = 2000;
  const NDArray shared = array();
  std::atomic<int> over{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      User user("of thread " + std::to_string(t)), common("common");
      for (int i = 0; i < kRounds; ++i) {
        user.get({shared});
        common.get({shared});
        if (kept.bytes() > 250) ++over;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(over, 0);
  EXPECT_EQ(kept.bytes(), 0);
}

}  // namespace
}  // namespace hybridnet
