#include "engine/waiting_caller.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace hybridnet {
namespace {

constexpr int64_t kLong = int64_t{3600} * 1'000'000'000;  // longer than any test waits

// Runs f in a new thread, whose record is independent of other tests.
template <typename F>
void in_new_thread(F f) {
  std::thread(f).join();
}

void wait_after_each(int calls, int64_t ns) {
  for (int i = 0; i < calls; ++i) {
    WaitingCaller::note_work(ns);
    WaitingCaller::note_wait();
  }
}

TEST(WaitingCaller, IsOneAfterThreeCallsWithWaits) {
  in_new_thread([] {
    wait_after_each(2, kLong);
    EXPECT_FALSE(WaitingCaller::is_likely());
    wait_after_each(1, kLong);
    EXPECT_TRUE(WaitingCaller::is_likely());
  });
}

TEST(WaitingCaller, TwoCallsWithoutAWaitEndIt) {
  in_new_thread([] {
    wait_after_each(5, kLong);
    WaitingCaller::note_work(kLong);
    EXPECT_FALSE(WaitingCaller::is_likely());
    wait_after_each(1, kLong);
    EXPECT_FALSE(WaitingCaller::is_likely());
    wait_after_each(3, kLong);
    EXPECT_TRUE(WaitingCaller::is_likely());
  });
}

TEST(WaitingCaller, WorkBeforeTheWaitEndsIt) {
  in_new_thread([] {
    wait_after_each(3, kLong);
    WaitingCaller::note_work(1);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    WaitingCaller::note_wait();
    EXPECT_FALSE(WaitingCaller::is_likely());
  });
}

TEST(WaitingCaller, WaitsForOtherThingsDoNotCount) {
  in_new_thread([] {
    wait_after_each(2, kLong);
    WaitingCaller::note_wait();
    EXPECT_FALSE(WaitingCaller::is_likely());
  });
}

TEST(WaitingCaller, ThreadsHaveTheirOwnRecords) {
  in_new_thread([] {
    wait_after_each(3, kLong);
    in_new_thread([] { EXPECT_FALSE(WaitingCaller::is_likely()); });
    EXPECT_TRUE(WaitingCaller::is_likely());
  });
}

}  // namespace
}  // namespace hybridnet
