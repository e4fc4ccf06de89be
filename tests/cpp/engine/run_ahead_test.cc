#include "engine/run_ahead.h"

#include <optional>

#include "engine/task.h"
#include "engine_fixture.h"

namespace hybridnet {
namespace {

constexpr int64_t kMega = int64_t{1} << 20;
constexpr int64_t kMilli = 1'000'000;

// Charges on another thread; `charged` opens when it has.
class Pusher {
 public:
  Pusher(RunAhead& ahead, int64_t bytes, int64_t cost_ns)
      : thread_([this, &ahead, bytes, cost_ns] {
          charge_.emplace(ahead.charge(bytes, cost_ns));
          charged.open();
        }) {}
  ~Pusher() { thread_.join(); }
  Gate charged;

 private:
  std::optional<RunAhead::Charge> charge_;
  std::thread thread_;
};

void until_somebody_waits(const RunAhead& ahead) {
  while (ahead.waits() == 0) std::this_thread::yield();
}

TEST(RunAhead, APushBeyondTheMemoryWaitsUntilAQueuedTaskBegins) {
  RunAhead ahead({.bytes = kMega});
  RunAhead::Charge first = ahead.charge(kMega, 0);  // one may always be queued, however big
  Pusher second(ahead, 100, 0);
  until_somebody_waits(ahead);
  EXPECT_LT(ahead.queued_bytes(), 2 * kMega);
  first.release();
  second.charged.pass();
}

TEST(RunAhead, WhatIsChargedIsGivenBackOnce) {
  RunAhead ahead({.bytes = kMega});
  {
    RunAhead::Charge first = ahead.charge(1000, 5 * kMilli);
    RunAhead::Charge moved(std::move(first));
    first.release();  // NOLINT: what was moved from holds nothing
    EXPECT_GE(ahead.queued_bytes(), 1000);
    moved.release();
    EXPECT_EQ(ahead.queued_bytes(), 0);
  }
  EXPECT_EQ(ahead.queued_bytes(), 0);
  EXPECT_EQ(ahead.waits(), 0u);
}

TEST(RunAhead, CostlyTasksWaitForCostlyOnesAndCheapOnesDoNot) {
  RunAhead ahead({.cost_ns = 10 * kMilli});
  RunAhead::Charge first = ahead.charge(0, 100 * kMilli);
  RunAhead::Charge second = ahead.charge(0, 100 * kMilli);  // two may be queued whatever they cost
  std::vector<RunAhead::Charge> cheap;
  for (int i = 0; i < 1000; ++i) cheap.push_back(ahead.charge(0, kMilli / 2));
  EXPECT_EQ(ahead.waits(), 0u);
  Pusher third(ahead, 0, 2 * kMilli);
  until_somebody_waits(ahead);
  second.release();
  third.charged.pass();
}

TEST(RunAhead, ManyTasksWithoutMemoryOfTheirOwnCountToo) {
  RunAhead ahead({.bytes = kMega});
  std::vector<RunAhead::Charge> queued;
  while (ahead.queued_bytes() <= kMega) queued.push_back(ahead.charge(0, 0));
  EXPECT_LE(queued.size(), 10'000u);
  Pusher next(ahead, 0, 0);
  until_somebody_waits(ahead);
  queued.clear();
  next.charged.pass();
}

TEST(RunAhead, WithoutLimitsNobodyWaits) {
  RunAhead ahead({.bytes = -1, .cost_ns = -1});
  std::vector<RunAhead::Charge> queued;
  for (int i = 0; i < 1000; ++i) queued.push_back(ahead.charge(1000 * kMega, 1000 * kMilli));
  EXPECT_EQ(ahead.waits(), 0u);
}

TEST(RunAhead, ATaskThatPushesNeverWaits) {
  RunAhead ahead({.bytes = kMega, .cost_ns = kMilli});
  std::vector<RunAhead::Charge> queued;
  const TaskScope inside;
  for (int i = 0; i < 5; ++i) queued.push_back(ahead.charge(kMega, 100 * kMilli));
  EXPECT_EQ(ahead.waits(), 0u);
}

std::atomic<int> g_begun{0}, g_ended{0};
std::atomic<bool> g_wanted{false};

RunAhead::WaitHooks counting_hooks() {
  g_begun = g_ended = 0;
  g_wanted = false;
  return {.begin = []() -> void* {
            ++g_begun;
            return &g_begun;
          },
          .end = [](void* begun) { g_ended += begun == &g_begun ? 1 : 0; },
          .wanted = [] { return g_wanted.load(); }};
}

TEST(RunAhead, AFrontEndLetsGoOfItsLocksDuringAWaitAndOnlyThen) {
  RunAhead ahead({.bytes = kMega});
  ahead.set_hooks(counting_hooks());
  RunAhead::Charge first = ahead.charge(2 * kMega, 0);
  EXPECT_EQ(g_begun, 0);
  {
    Pusher second(ahead, 0, 0);
    while (g_begun == 0) std::this_thread::yield();
    EXPECT_EQ(g_ended, 0);
    first.release();
  }
  EXPECT_EQ(g_ended, 1);
}

TEST(RunAhead, AThreadThatIsWantedGoesOn) {
  RunAhead ahead({.bytes = kMega});
  ahead.set_hooks(counting_hooks());
  const RunAhead::Charge first = ahead.charge(2 * kMega, 0);
  Pusher second(ahead, 0, 0);
  until_somebody_waits(ahead);
  g_wanted = true;
  second.charged.pass();
}

TEST(RunAhead, NobodyWaitsAfterTheWorkersHaveEnded) {
  RunAhead ahead({.bytes = kMega});
  const RunAhead::Charge first = ahead.charge(2 * kMega, 0);
  ahead.stop_waiting();
  const RunAhead::Charge second = ahead.charge(2 * kMega, 0);
  EXPECT_EQ(ahead.waits(), 0u);
}

TEST(RunAhead, ManyThreadsThatPushToOneEngineAllComeThrough) {
  RunAhead ahead({.bytes = 64 * 1024, .cost_ns = 2 * kMilli});
  EngineUser user(make_threaded_engine(2));
  Var vars[4];
  std::atomic<int> ran{0};
  std::vector<std::thread> threads;
  for (Var& var : vars) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        auto charge = std::make_shared<RunAhead::Charge>(ahead.charge(8 * 1024, i % 3 == 0 ? kMilli : 0));
        user.push({}, {&var}, [charge, &ran] {
          charge->release();
          ++ran;
        });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  user.engine->wait_all();
  EXPECT_EQ(ran.load(), 2000);
  EXPECT_EQ(ahead.queued_bytes(), 0);
}

}  // namespace
}  // namespace hybridnet
