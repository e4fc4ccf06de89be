// Tests of spare objects per group of threads (base/thread_slots.h).
#include "base/thread_slots.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <thread>
#include <vector>

namespace hybridnet {
namespace {

using Slots = ThreadSlots<std::unique_ptr<int>>;

void on_another_thread(const std::function<void()>& body) { std::thread(body).join(); }

TEST(ThreadSlots, AThreadGetsBackWhatItGave) {
  Slots slots;
  EXPECT_EQ(slots.take(), nullptr);
  auto spare = std::make_unique<int>(7);
  const int* given = spare.get();
  slots.give(spare);
  EXPECT_EQ(spare, nullptr);
  const std::unique_ptr<int> found = slots.take();
  EXPECT_EQ(found.get(), given);
  EXPECT_EQ(slots.take(), nullptr);
}

TEST(ThreadSlots, AGroupKeepsOneAndLeavesTheRestWithTheGiver) {
  Slots slots;
  auto first = std::make_unique<int>(1), second = std::make_unique<int>(2);
  slots.give(first);
  slots.give(second);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(*second, 2);
  std::unique_ptr<int> none;
  slots.give(none);
  EXPECT_EQ(*slots.take(), 1);
}

TEST(ThreadSlots, ThreadsThatFollowEachOtherHaveSlotsOfTheirOwn) {
  std::set<size_t> groups;
  for (size_t i = 0; i < kThreadSlots; ++i) on_another_thread([&] { groups.insert(thread_slot()); });
  EXPECT_EQ(groups.size(), kThreadSlots);
  EXPECT_EQ(thread_slot(), thread_slot());
}

TEST(ThreadSlots, WhatOthersLeftIsFoundOnlyWhenAskedFor) {
  Slots slots;
  for (size_t i = 0; i < kThreadSlots; ++i) {
    on_another_thread([&] {
      auto spare = std::make_unique<int>(static_cast<int>(thread_slot()));
      slots.give(spare);
    });
  }
  const std::unique_ptr<int> own = slots.take();
  ASSERT_NE(own, nullptr);
  EXPECT_EQ(*own, static_cast<int>(thread_slot()));
  EXPECT_EQ(slots.take(), nullptr);
  std::set<int> found;
  while (const std::unique_ptr<int> any = slots.take_any()) found.insert(*any);
  EXPECT_EQ(found.size(), kThreadSlots - 1);
}

TEST(ThreadSlots, SweepDropsWhatIsNotKept) {
  Slots slots;
  for (size_t i = 0; i < kThreadSlots; ++i) {
    on_another_thread([&] {
      auto spare = std::make_unique<int>(static_cast<int>(thread_slot()));
      slots.give(spare);
    });
  }
  slots.sweep([](int value) { return value % 2 == 0; });
  std::set<int> left;
  while (const std::unique_ptr<int> any = slots.take_any()) left.insert(*any);
  EXPECT_EQ(left, (std::set<int>{0, 2, 4, 6}));
}

struct Counted : RefCounted<Counted> {};

TEST(ThreadSlots, CountsOfReferencesMoveWithTheOwner) {
  const Ref<Counted> object = make_ref<Counted>();
  {
    ThreadSlots<Ref<Counted>> slots;
    Ref<Counted> spare = object;
    slots.give(spare);
    EXPECT_EQ(spare, nullptr);
    EXPECT_EQ(object->ref_count(), 2);
    const Ref<Counted> taken = slots.take();
    EXPECT_EQ(taken, object);
    EXPECT_EQ(object->ref_count(), 2);
    Ref<Counted> again = taken;
    slots.give(again);
  }
  EXPECT_EQ(object->ref_count(), 1);
}

TEST(ThreadSlots, NoObjectIsSharedAmongManyThreads) {
  Slots slots;
  std::atomic<int> made{0}, doubly_used{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 12; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 3000; ++i) {
        std::unique_ptr<int> object = (i + t) % 5 == 0 ? slots.take_any() : slots.take();
        if (!object) {
          object = std::make_unique<int>(0);
          ++made;
        }
        doubly_used += ++*object != 1;
        --*object;
        slots.give(object);
        if (object) --made;  // dropped here
        if (i % 500 == t) slots.sweep([](int) { return true; });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(doubly_used, 0);
  int left = 0;
  while (slots.take_any()) ++left;
  EXPECT_LE(left, made);  // sweep() may drop an object whose slot was filled in between
  EXPECT_LE(left, static_cast<int>(kThreadSlots));
}

}  // namespace
}  // namespace hybridnet
