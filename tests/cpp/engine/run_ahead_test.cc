#include "engine/run_ahead.h"

#include <optional>

#include "engine/task.h"
#include "engine_fixture.h"

namespace hybridnet {
namespace {

constexpr int64_t kMilli = 1'000'000;

// Charges on another thread; `charged` opens when the charge is done.
class Pusher {
 public:
  Pusher(RunAhead& ahead, int64_t cost_ns)
      : thread_([this, &ahead, cost_ns] {
          charge_.emplace(ahead.charge(cost_ns));
          charged.open();
        }) {}
  ~Pusher() { thread_.join(); }
  Gate charged;

 private:
  std::optional<RunAhead::Charge> charge_;
  std::thread thread_;
};

void until_a_thread_waits(const RunAhead& ahead) {
  while (ahead.waits() == 0) std::this_thread::yield();
}

std::vector<RunAhead::Charge> charges(RunAhead& ahead, int count, int64_t cost_ns) {
  std::vector<RunAhead::Charge> queued;
  for (int i = 0; i < count; ++i) queued.push_back(ahead.charge(cost_ns));
  return queued;
}

TEST(RunAhead, APushBeyondTheLimitWaitsUntilHalfOfTheQueuedWorkHasBegun) {
  RunAhead ahead(10 * kMilli);
  std::vector<RunAhead::Charge> queued = charges(ahead, 11, kMilli);
  EXPECT_EQ(ahead.waits(), 0u);
  Pusher next(ahead, kMilli);
  until_a_thread_waits(ahead);
  for (int i = 0; i < 5; ++i) queued.pop_back();
  EXPECT_EQ(ahead.queued_ns(), 6 * kMilli);  // more than half: `next` still waits
  queued.pop_back();
  next.charged.pass();
  EXPECT_EQ(ahead.queued_ns(), 6 * kMilli);
}

TEST(RunAhead, WhatIsChargedIsGivenBackOnce) {
  RunAhead ahead(10 * kMilli);
  {
    RunAhead::Charge first = ahead.charge(5 * kMilli);
    RunAhead::Charge moved(std::move(first));
    first.release();  // NOLINT: a moved-from charge holds nothing
    EXPECT_EQ(ahead.queued_ns(), 5 * kMilli);
    moved.release();
    EXPECT_EQ(ahead.queued_ns(), 0);
  }
  EXPECT_EQ(ahead.queued_ns(), 0);
  EXPECT_EQ(ahead.waits(), 0u);
}

TEST(RunAhead, TwoTasksMayBeQueuedWhateverTheyCost) {
  RunAhead ahead(10 * kMilli);
  std::vector<RunAhead::Charge> queued = charges(ahead, 2, 100 * kMilli);
  EXPECT_EQ(ahead.waits(), 0u);
  Pusher third(ahead, kMilli);
  until_a_thread_waits(ahead);
  queued.pop_back();
  third.charged.pass();
}

TEST(RunAhead, TasksOfUnknownCostCountToo) {
  RunAhead ahead(10 * kMilli);
  std::vector<RunAhead::Charge> queued;
  while (ahead.queued_ns() <= 10 * kMilli) queued.push_back(ahead.charge(0));
  EXPECT_LE(queued.size(), 10'000u);
  Pusher next(ahead, 0);
  until_a_thread_waits(ahead);
  queued.clear();
  next.charged.pass();
}

TEST(RunAhead, WithoutALimitNoThreadWaits) {
  RunAhead ahead(-1);
  const std::vector<RunAhead::Charge> queued = charges(ahead, 1000, 1000 * kMilli);
  EXPECT_EQ(ahead.waits(), 0u);
}

TEST(RunAhead, ATaskThatPushesNeverWaits) {
  RunAhead ahead(kMilli);
  const TaskScope inside;
  const std::vector<RunAhead::Charge> queued = charges(ahead, 5, 100 * kMilli);
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
  RunAhead ahead(kMilli);
  ahead.set_hooks(counting_hooks());
  std::vector<RunAhead::Charge> queued = charges(ahead, 2, kMilli);
  EXPECT_EQ(g_begun, 0);
  {
    Pusher next(ahead, 0);
    while (g_begun == 0) std::this_thread::yield();
    EXPECT_EQ(g_ended, 0);
    queued.clear();
  }
  EXPECT_EQ(g_ended, 1);
}

TEST(RunAhead, AThreadThatIsWantedGoesOn) {
  RunAhead ahead(kMilli);
  ahead.set_hooks(counting_hooks());
  const std::vector<RunAhead::Charge> queued = charges(ahead, 2, kMilli);
  Pusher next(ahead, 0);
  until_a_thread_waits(ahead);
  g_wanted = true;
  next.charged.pass();
}

TEST(RunAhead, NoThreadWaitsAfterTheWorkersHaveEnded) {
  RunAhead ahead(kMilli);
  const std::vector<RunAhead::Charge> queued = charges(ahead, 2, kMilli);
  ahead.stop_waiting();
  const RunAhead::Charge third = ahead.charge(kMilli);
  EXPECT_EQ(ahead.waits(), 0u);
}

TEST(RunAhead, ManyThreadsThatPushToOneEngineAllComeThrough) {
  RunAhead ahead(2 * kMilli);
  EngineUser user(make_threaded_engine(2));
  Var vars[4];
  std::atomic<int> ran{0};
  std::vector<std::thread> threads;
  for (Var& var : vars) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        auto charge = std::make_shared<RunAhead::Charge>(ahead.charge(i % 3 == 0 ? kMilli : 0));
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
  EXPECT_EQ(ahead.queued_ns(), 0);
}

}  // namespace
}  // namespace hybridnet
