// Guarantees of both engines.
#include "hybridnet/engine.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "engine/engine_fixture.h"

namespace hybridnet {
namespace {

INSTANTIATE_TEST_SUITE_P(Engines, BothEngines, testing::Values("threaded", "serial"),
                         [](const auto& info) { return info.param; });

TEST_P(BothEngines, WritesOfOneVariableRunInPushOrder) {
  Var var;
  std::vector<int> order;  // not atomic: guarded by the variable
  for (int i = 0; i < 1000; ++i) push({}, {&var}, [&order, i] { order.push_back(i); });
  engine->wait_for_var(var);
  std::vector<int> expected(1000);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(order, expected);
}

TEST_P(BothEngines, AReadSeesTheWriteBeforeItAndNotTheOneAfter) {
  Var data, seen;
  int value = 0;
  std::vector<int> values;
  for (int i = 1; i <= 200; ++i) {
    push({}, {&data}, [&value, i] { value = i; });
    push({&data}, {&seen}, [&] { values.push_back(value); });
  }
  engine->wait_for_var(seen);
  std::vector<int> expected(200);
  std::iota(expected.begin(), expected.end(), 1);
  EXPECT_EQ(values, expected);
  engine->wait_all();
}

TEST_P(BothEngines, VersionCountsWrites) {
  Var var, other;
  EXPECT_EQ(var.version(), 0u);
  push({&other}, {&var}, [] {});
  push({&var}, {&other}, [] {});
  engine->wait_all();
  EXPECT_EQ(var.version(), 1u);
  ASSERT_TRUE(begin({&other}, {&var}));
  finish({&other}, {&var});
  EXPECT_EQ(var.version(), 2u);
  EXPECT_EQ(other.version(), 1u);
}

TEST_P(BothEngines, VariablesAreIdleAndReadableWhenAllIsDone) {
  Var read, written;
  push({&read}, {&written}, [] {});
  engine->wait_all();
  EXPECT_TRUE(read.idle() && read.readable());
  EXPECT_TRUE(written.idle() && written.readable());
}

TEST_P(BothEngines, ATaskKnowsItsDeviceAndHasAtLeastOneCore) {
  Var var;
  TaskContext seen;
  const Device device{DeviceType::kCPU, 3};
  VarList writes{&var};
  engine->push([&seen](TaskContext& context) { seen = context; }, {{}, writes}, {.device = device});
  engine->wait_for_var(var);
  EXPECT_EQ(seen.device, device);
  EXPECT_GE(seen.cores, 1);
  EXPECT_FALSE(seen.inline_run);
}

TEST_P(BothEngines, AVariableListedTwiceIsAnError) {
  Var a, b;
  EXPECT_THROW(push({&a, &a}, {}, [] {}), EngineError);
  EXPECT_THROW(push({}, {&a, &b, &a}, [] {}), EngineError);
  EXPECT_THROW(push({&b, &a}, {&a}, [] {}), EngineError);
  std::vector<Var> many(40);
  VarList list;
  for (Var& var : many) list.push_back(&var);
  push(list, {&a}, [] {});
  list.push_back(&many[7]);
  EXPECT_THROW(push(list, {&a}, [] {}), EngineError);
  engine->wait_all();
  EXPECT_TRUE(a.idle());
}

TEST_P(BothEngines, WaitingInsideATaskIsAnError) {
  Var var, other;
  int thrown = 0;
  auto wait_in_every_way = [&] {
    auto count = [&](auto wait) {
      try {
        wait();
      } catch (const EngineError&) {
        ++thrown;
      }
    };
    count([&] { engine->wait_for_var(other); });
    count([&] { engine->wait_to_read(other); });
    count([&] { engine->wait_all(); });
  };
  push({}, {&var}, wait_in_every_way);
  engine->wait_for_var(var);
  EXPECT_EQ(thrown, 3);
  ASSERT_TRUE(begin({}, {&var}));
  wait_in_every_way();
  finish({}, {&var});
  EXPECT_EQ(thrown, 6);
  engine->wait_all();  // allowed again after finish()
}

TEST_P(BothEngines, ATaskMayPushTasksThatRunAfterIt) {
  Var var;
  std::vector<int> order;
  push({}, {&var}, [&] {
    push({}, {&var}, [&] { order.push_back(2); });
    order.push_back(1);
  });
  engine->wait_all();
  EXPECT_EQ(order, (std::vector{1, 2}));
}

TEST_P(BothEngines, ATaskPushedDuringAnInlineRunRunsAfterIt) {
  Var var;
  std::vector<int> order;
  ASSERT_TRUE(begin({}, {&var}));
  push({}, {&var}, [&] { order.push_back(2); });
  order.push_back(1);
  finish({}, {&var});
  engine->wait_for_var(var);
  EXPECT_EQ(order, (std::vector{1, 2}));
}

TEST_P(BothEngines, TasksAreFreedWithWhatTheyKeepAlive) {
  auto owned = std::make_shared<Var>();
  const std::weak_ptr<Var> watched = owned;
  Var* var = owned.get();
  push({}, {var}, [owned] {});
  push({}, {var}, [owned] { throw ValueError({.message = "as failing ones are"}); });
  owned.reset();
  EXPECT_THROW(engine->wait_all(), ValueError);
  EXPECT_TRUE(watched.expired());
}

TEST_P(BothEngines, DestructionFinishesWhatWasPushed) {
  Var var;
  std::atomic<int> ran{0};
  for (int i = 0; i < 100; ++i) push({}, {&var}, [&ran] { ++ran; });
  engine.reset();
  EXPECT_EQ(ran.load(), 100);
}

TEST_P(BothEngines, StoppedWorkersStartAgainAndRunWhatWasPushedMeanwhile) {
  Var var;
  int ran = 0;
  push({}, {&var}, [&ran] { ++ran; });
  engine->stop_workers();
  EXPECT_EQ(ran, 1);
  push({}, {&var}, [&ran] { ++ran; });
  engine->start_workers();
  engine->wait_for_var(var);
  EXPECT_EQ(ran, 2);
}

TEST_P(BothEngines, SeveralThreadsPushTasksOnTheSameVariables) {
  // Every thread lists the variables in another order: interleaved pushes must not wait for each other.
  constexpr int kThreads = 4, kTasks = 500;
  std::vector<Var> vars(3);
  int sum = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kTasks; ++i) {
        push({}, {&vars[t % 3], &vars[(t + 1) % 3], &vars[(t + 2) % 3]}, [&sum] { ++sum; });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  engine->wait_all();
  EXPECT_EQ(sum, kThreads * kTasks);
}

TEST_P(BothEngines, WaitAllWaitsForWhatWasPushedBeforeAndNotForWhatOthersPushMeanwhile) {
  const PushRate others(*this, 3);
  std::vector<std::thread> waiting;
  std::atomic<int> early{0};
  for (int t = 0; t < 3; ++t) {
    waiting.emplace_back([this, &early] {
      for (int i = 0; i < 100; ++i) {
        Var var;
        std::atomic<bool> done{false};
        push({}, {&var}, [&done] { done = true; });
        engine->wait_all();
        if (!done) ++early;
        engine->wait_for_var(var);
      }
    });
  }
  for (std::thread& thread : waiting) thread.join();
  EXPECT_EQ(early, 0);
}

TEST_P(BothEngines, SaysWhetherATaskIsPending) {
  EXPECT_FALSE(engine->has_pending());
  Var var;
  bool seen = false;
  push({}, {&var}, [&] { seen = engine->has_pending(); });
  engine->wait_all();
  EXPECT_TRUE(seen);
  EXPECT_FALSE(engine->has_pending());
}

TEST_P(BothEngines, WaitAllWaitsForTheTasksThatTasksPush) {
  const PushRate others(*this, 2);
  for (int i = 0; i < 30; ++i) {
    Var outer, inner;
    std::atomic<bool> done{false};
    push({}, {&outer}, [&] {
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      push({}, {&inner}, [&] {
        std::this_thread::sleep_for(std::chrono::microseconds(200));
        done = true;
      });
    });
    engine->wait_all();
    EXPECT_TRUE(done);
    engine->wait_for_var(inner);
  }
}

TEST_P(BothEngines, NamesItselfAsMXNetDoes) {
  EXPECT_STREQ(engine->type_name(), GetParam() == "serial" ? "NaiveEngine" : "ThreadedEnginePerDevice");
}

TEST_P(BothEngines, RemembersTheBulkSize) {
  EXPECT_EQ(engine->bulk_size(), 0);
  engine->set_bulk_size(15);
  EXPECT_EQ(engine->bulk_size(), 15);
  engine->set_bulk_size(0);
  EXPECT_EQ(engine->bulk_size(), 0);
}

TEST_P(BothEngines, ATasksLocationIsThatOfItsPushAndNoProbeIsAsked) {
  Var var;
  set_location_probe([] { return SourceLocation{"probed.py", 1}; });
  std::vector<std::string> seen;
  auto look = [&seen] { seen.push_back(current_location().str()); };
  push({}, {&var}, look, {.where = {"pushed.py", 5}});
  push({}, {&var}, look);
  engine->wait_for_var(var);
  EXPECT_EQ(current_location().str(), "probed.py:1");
  set_location_probe(nullptr);
  EXPECT_EQ(seen, (std::vector<std::string>{"pushed.py:5", ""}));
}

TEST_P(BothEngines, WorkersMayBeStoppedBySeveralThreadsAtOnce) {
  Var var;
  std::atomic<int> ran{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        push({}, {&var}, [&ran] { ++ran; });
        engine->stop_workers();
        engine->start_workers();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  engine->wait_all();
  EXPECT_EQ(ran.load(), 150);
}

TEST_P(BothEngines, DestructionStartsStoppedWorkersAgain) {
  auto owned = std::make_shared<Var>();
  std::atomic<int> ran{0};
  engine->stop_workers();
  engine->stop_workers();
  push({}, {owned.get()}, [owned, &ran] { ++ran; });
  engine.reset();
  EXPECT_EQ(ran.load(), 1);
}

// --- inline runs ---------------------------------------------------------------------------------------------------

TEST_P(BothEngines, CheapWorkOnFreeVariablesRunsInline) {
  Var read, written;
  ASSERT_TRUE(begin({&read}, {&written}, {.cost_ns = 1000}));
  EXPECT_FALSE(read.idle());
  EXPECT_TRUE(read.readable());
  EXPECT_FALSE(written.readable());
  finish({&read}, {&written});
  EXPECT_TRUE(read.idle() && written.idle());
  push({&read}, {&written}, [] {});
  engine->wait_all();
  EXPECT_EQ(engine->counters().inlined, 1u);
  EXPECT_EQ(engine->counters().queued, 1u);
}

TEST_P(BothEngines, InlineReadersShareAVariableAndExcludeAWriter) {
  Var var, x, y;
  ASSERT_TRUE(begin({&var}, {&x}));
  ASSERT_TRUE(begin({&var}, {&y}));
  EXPECT_FALSE(begin({}, {&var}));
  finish({&var}, {&x});
  EXPECT_FALSE(begin({}, {&var}));
  finish({&var}, {&y});
  ASSERT_TRUE(begin({}, {&var}));
  EXPECT_FALSE(begin({&var}, {&x}));
  EXPECT_TRUE(x.idle());  // the refusal leaves no access behind
  finish({}, {&var});
}

TEST_P(BothEngines, InlineIsRefusedForAVariableListedTwice) {
  Var a;
  EXPECT_FALSE(begin({&a}, {&a}));
  EXPECT_FALSE(begin({}, {&a, &a}));
  EXPECT_TRUE(a.idle());
}

TEST_P(BothEngines, APushWaitsForAnInlineRunOfAnotherThread) {
  Var var;
  Gate begun, may_finish;
  bool finished = false;
  std::thread other([&] {
    ASSERT_TRUE(begin({}, {&var}));
    begun.open();
    may_finish.pass();
    finished = true;
    finish({}, {&var});
  });
  begun.pass();
  bool finished_before = false;
  std::thread pusher([&] { push({&var}, {}, [&] { finished_before = finished; }); });
  may_finish.open();
  other.join();
  pusher.join();
  engine->wait_all();
  EXPECT_TRUE(finished_before);
}

TEST_P(BothEngines, AWaitEndsWhenAnInlineRunOfAnotherThreadDoes) {
  Var var;
  Gate begun, may_finish;
  std::atomic<bool> finished{false};
  std::thread other([&] {
    ASSERT_TRUE(begin({}, {&var}));
    begun.open();
    may_finish.pass();
    finished = true;
    finish({}, {&var});
  });
  begun.pass();
  std::thread opener([&] { may_finish.open(); });
  engine->wait_to_read(var);
  EXPECT_TRUE(finished.load());
  engine->wait_for_var(var);
  other.join();
  opener.join();
}

// --- errors --------------------------------------------------------------------------------------------------------

void fail(const char* message = "broken") { throw ValueError({.message = message}); }

TEST_P(BothEngines, AnErrorIsThrownOnceByTheWaitAndNamesTheTask) {
  Var var;
  push({}, {&var}, [] { fail(); }, {.name = "dot", .where = {"train.py", 17}});
  try {
    engine->wait_for_var(var);
    FAIL() << "no error";
  } catch (const ValueError& error) {
    EXPECT_STREQ(error.what(), "operator 'dot': broken.\n  At: train.py:17");
  }
  engine->wait_for_var(var);
  engine->wait_to_read(var);
  engine->wait_all();
  EXPECT_EQ(engine->counters().failed, 1u);
}

TEST_P(BothEngines, ThreadsThatAwaitTheSameFailureGetAnErrorEachToWhichTheyMayAdd) {
  for (int i = 0; i < 50; ++i) {
    std::vector<Var> vars(4);
    push({}, {&vars[0], &vars[1], &vars[2], &vars[3]}, [] { throw ValueError({.message = "no"}); });
    std::vector<std::thread> threads;
    std::vector<std::string> texts(vars.size());
    for (size_t t = 0; t < vars.size(); ++t) {
      threads.emplace_back([&, t] {
        try {
          engine->wait_to_read(vars[t]);
        } catch (ValueError& error) {
          error.add_context({.node = std::to_string(t)});
          texts[t] = error.fields().node;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(texts, (std::vector<std::string>{"0", "1", "2", "3"}));
    engine->wait_all();
  }
}

TEST_P(BothEngines, OtherExceptionsBecomeErrors) {
  Var var;
  push({}, {&var}, [] { throw std::runtime_error("from a library"); }, {.name = "conv"});
  try {
    engine->wait_to_read(var);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kError);
    EXPECT_STREQ(error.what(), "operator 'conv': from a library.");
  }
  push({}, {&var}, [] { throw std::bad_alloc(); });
  try {
    engine->wait_for_var(var);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kMemory);
  }
  push({}, {&var}, [] { throw 42; });
  EXPECT_THROW(engine->wait_for_var(var), Error);
}

TEST_P(BothEngines, AnErrorPassesOnToWhatReadsOrWritesTheVariable) {
  Var failed, copy, copy_of_copy, sound;
  bool ran = false;
  push({}, {&failed}, [] { fail(); });
  push({&failed}, {&copy}, [&ran] { ran = true; });
  push({}, {&failed}, [&ran] { ran = true; });
  push({&copy}, {&copy_of_copy}, [&ran] { ran = true; });
  push({}, {&sound}, [] {});
  EXPECT_THROW(engine->wait_to_read(copy_of_copy), ValueError);
  engine->wait_for_var(sound);
  EXPECT_THROW(engine->wait_for_var(failed), ValueError);
  EXPECT_THROW(engine->wait_for_var(copy), ValueError);
  EXPECT_FALSE(ran);
  EXPECT_EQ(engine->counters().failed, 4u);
  engine->wait_all();
}

TEST_P(BothEngines, WaitAllThrowsTheFirstErrorAndClearsAll) {
  Var a, b, copy;
  push({}, {&a}, [] { fail("first"); });
  engine->wait_for_var(b);
  push({&a}, {&copy}, [] {});
  EXPECT_THROW(
      {
        while (copy.version() == 0) std::this_thread::yield();  // the engine does not promise its order after the first
        push({}, {&b}, [] { fail("second"); });
        try {
          engine->wait_all();
        } catch (const ValueError& error) {
          EXPECT_STREQ(error.what(), "first.");
          throw;
        }
      },
      ValueError);
  engine->wait_all();
  engine->wait_for_var(a);
  engine->wait_to_read(b);
  engine->wait_for_var(copy);
}

TEST_P(BothEngines, AnErrorThrownByOneWaitIsNotThrownAgainByWaitAll) {
  Var a, b;
  push({}, {&a, &b}, [] { fail(); });
  EXPECT_THROW(engine->wait_for_var(a), ValueError);
  engine->wait_all();
  engine->wait_for_var(b);  // cleared by wait_all
}

TEST_P(BothEngines, AVariableWithAnErrorIsNotReadableUntilItWasReported) {
  Var var, out;
  push({}, {&var}, [] { fail(); });
  EXPECT_THROW(engine->wait_all(), ValueError);
  push({}, {&var}, [] { fail(); });
  while (var.version() < 2) std::this_thread::yield();
  EXPECT_FALSE(var.readable());
  EXPECT_FALSE(begin({&var}, {&out}));
  EXPECT_FALSE(begin({}, {&var}));
  EXPECT_THROW(engine->wait_to_read(var), ValueError);
  EXPECT_TRUE(var.readable());
  ASSERT_TRUE(begin({&var}, {&out}));
  finish({&var}, {&out});
}

TEST_P(BothEngines, WorkGoesOnAfterAnErrorWasReported) {
  Var var;
  int value = 0;
  push({}, {&var}, [] { fail(); });
  EXPECT_THROW(engine->wait_all(), ValueError);
  push({}, {&var}, [&value] { value = 7; });
  engine->wait_for_var(var);
  EXPECT_EQ(value, 7);
}

TEST_P(BothEngines, AnErrorOfADeadVariableIsStillReported) {
  {
    auto owned = std::make_shared<Var>();
    push({}, {owned.get()}, [owned] { fail(); });
  }
  EXPECT_THROW(engine->wait_all(), ValueError);
}

}  // namespace
}  // namespace hybridnet
