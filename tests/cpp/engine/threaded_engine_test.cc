// Guarantees of the threaded engine only: overlap of independent tasks, and the thread that runs a task.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <latch>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "engine/engine_fixture.h"
#include "hybridnet/env.h"
#include "hybridnet/threads.h"

namespace hybridnet {
namespace {

TEST_F(ThreadedEngineTest, PushReturnsWhileTheTaskRuns) {
  Var var;
  Gate gate;
  push({}, {&var}, [&gate] { gate.pass(); });
  EXPECT_FALSE(var.readable());
  gate.open();
  engine->wait_for_var(var);
}

TEST_F(ThreadedEngineTest, ReadersOfOneVariableOverlap) {
  Var shared, x, y;
  std::latch both(2);
  push({&shared}, {&x}, [&both] { both.arrive_and_wait(); });
  push({&shared}, {&y}, [&both] { both.arrive_and_wait(); });
  engine->wait_all();
}

TEST_F(ThreadedEngineTest, TasksWithoutACommonVariableOverlap) {
  std::vector<Var> vars(4);
  std::latch all(4);
  for (Var& var : vars) push({}, {&var}, [&all] { all.arrive_and_wait(); });
  engine->wait_all();
}

TEST_F(ThreadedEngineTest, AWriterWaitsForTheReadersBeforeItAndLaterReadersForTheWriter) {
  Var data, x, y;
  Gate gate;
  std::vector<int> order;
  push({&data}, {&x}, [&] {
    gate.pass();
    order.push_back(1);
  });
  push({}, {&data}, [&] { order.push_back(2); });
  push({&data}, {&y}, [&] { order.push_back(3); });
  EXPECT_FALSE(begin({&data}, {}));  // would overtake the writer
  gate.open();
  engine->wait_all();
  EXPECT_EQ(order, (std::vector{1, 2, 3}));
}

TEST_F(ThreadedEngineTest, WaitToReadDoesNotWaitForReadersButWaitForVarDoes) {
  Var data, x;
  Gate gate;
  bool read = false;
  push({}, {&data}, [] {});
  push({&data}, {&x}, [&] {
    gate.pass();
    read = true;
  });
  engine->wait_to_read(data);  // returns although the gate is closed
  gate.open();
  engine->wait_for_var(data);
  EXPECT_TRUE(read);
  engine->wait_all();
}

TEST_F(ThreadedEngineTest, AWaitDoesNotWaitForWhatIsPushedLater) {
  Var var;
  Gate first, later;
  push({&var}, {}, [&] { first.pass(); });
  std::thread waiter([&] { engine->wait_for_var(var); });
  while (begin({&var}, {})) {  // refused as soon as the wait for all accesses is in the queue
    finish({&var}, {});
    std::this_thread::yield();
  }
  push({}, {&var}, [&] { later.pass(); });
  first.open();
  waiter.join();  // returns although the later task cannot have ended
  EXPECT_EQ(var.version(), 0u);
  later.open();
  engine->wait_for_var(var);
  EXPECT_EQ(var.version(), 1u);
}

TEST_F(ThreadedEngineTest, CostlyWorkIsNotRunInline) {
  Var var;
  const int64_t limit = environment().inline_limit_ns;
  EXPECT_FALSE(begin({}, {&var}, {.cost_ns = limit}));
  EXPECT_TRUE(var.idle());
  engine->set_bulk_size(15);  // raises the limit
  ASSERT_TRUE(begin({}, {&var}, {.cost_ns = limit}));
  finish({}, {&var});
  engine->set_bulk_size(0);
  EXPECT_FALSE(begin({}, {&var}, {.cost_ns = limit}));
  EXPECT_FALSE(begin({}, {&var}, {.device = {DeviceType::kGPU, 0}}));
}

TEST_F(ThreadedEngineTest, AVariableWithQueuedTasksIsNotTakenInline) {
  Var data, out;
  Gate gate;
  push({&data}, {&out}, [&gate] { gate.pass(); });
  ASSERT_TRUE(begin({&data}, {}));  // together with the reader
  finish({&data}, {});
  push({}, {&data}, [] {});
  EXPECT_FALSE(begin({&data}, {}));  // must follow the writer
  gate.open();
  engine->wait_all();
  ASSERT_TRUE(begin({&data}, {}));
  finish({&data}, {});
}

class OneWorker : public ThreadedEngineTest {
 protected:
  OneWorker() : ThreadedEngineTest(1) {}
};

TEST_F(OneWorker, ReadyTasksRunByPriorityThenInPushOrder) {
  Var blocked;
  std::vector<Var> vars(6);
  std::vector<int> order;
  Gate begun, gate;
  push({}, {&blocked}, [&] {
    begun.open();
    gate.pass();
  });
  begun.pass();
  const std::vector<int> priorities{0, 5, 0, -3, 5, 9};
  for (int i = 0; i < 6; ++i) {
    push({}, {&vars[i]}, [&order, i] { order.push_back(i); }, {.priority = priorities[i]});
  }
  gate.open();
  engine->wait_all();
  EXPECT_EQ(order, (std::vector{5, 1, 4, 0, 2, 3}));
}

TEST_F(OneWorker, EachDeviceHasItsOwnWorkers) {
  Var cpu, gpu0, gpu1;
  std::latch all(3);
  auto meet = [&all] { all.arrive_and_wait(); };
  push({}, {&cpu}, meet);
  push({}, {&gpu0}, meet, {.device = {DeviceType::kGPU, 0}});
  push({}, {&gpu1}, meet, {.device = {DeviceType::kGPU, 1}});
  engine->wait_all();
}

TEST_F(OneWorker, TasksOfDifferentDevicesAreOrderedByTheirVariables) {
  Var var;
  std::vector<int> order;
  for (int i = 0; i < 100; ++i) {
    push({}, {&var}, [&order, i] { order.push_back(i); },
         {.device = {i % 2 == 0 ? DeviceType::kCPU : DeviceType::kGPU, 0}});
  }
  engine->wait_all();
  ASSERT_EQ(order.size(), 100u);
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

TEST_F(ThreadedEngineTest, AWaitRunsAShortReadyTaskItselfWhileWorkersSleep) {
  Var var;
  std::thread::id ran_on;
  engine->stop_workers();
  push({}, {&var}, [&ran_on] { ran_on = std::this_thread::get_id(); }, {.cost_ns = 1000});
  engine->wait_for_var(var);
  EXPECT_EQ(ran_on, std::this_thread::get_id());
  engine->start_workers();
}

TEST(ThreadedEngineCores, ACheapTaskGetsOneCoreAndACostlyOneAll) {
  const int before = cpu_cores();
  set_cpu_cores(16);  // on a small machine a task worth two cores gets all
  {
    EngineUser user(make_threaded_engine());
    Var var;
    std::vector<int> cores;
    const VarList writes{&var};
    for (int64_t cost : {int64_t{0}, int64_t{10'000}, int64_t{60'000}, int64_t{50'000'000}}) {
      user.engine->push(
          [&cores](TaskContext& context) {
            EXPECT_EQ(current_cores(), context.cores);
            cores.push_back(context.cores);
          },
          {{}, writes}, {.cost_ns = cost});
    }
    user.engine->wait_all();
    EXPECT_EQ(cores, (std::vector{1, 1, 8, 16}));
  }
  set_cpu_cores(before);
}

TEST(ThreadedEngineCores, LongTasksSideBySideShareTheCores) {
  const int before = cpu_cores();
  set_cpu_cores(4);
  {
    EngineUser user(make_threaded_engine());
    std::vector<Var> vars(3);
    Gate gate, begun;
    std::latch both(2);
    std::atomic<int> sum{0};
    user.push({}, {&vars[0]},
              [&] {
                begun.open();
                gate.pass();
              },
              {.cost_ns = 200'000'000});  // holds all cores until the next two tasks are ready
    begun.pass();
    for (int i = 1; i <= 2; ++i) {
      const VarList writes{&vars[i]};
      user.engine->push(
          [&](TaskContext& context) {
            sum += context.cores;
            both.arrive_and_wait();
          },
          {{}, writes}, {.cost_ns = 200'000'000});
    }
    EXPECT_EQ(free_cores(), 0);
    EXPECT_EQ(sum.load(), 0);
    gate.open();
    user.engine->wait_all();
    EXPECT_EQ(sum.load(), 4);
  }
  EXPECT_EQ(free_cores(), 4);
  set_cpu_cores(before);
}

// The largest number of tasks that ran at once, and the smallest number of cores of a task.
struct Overlap {
  std::atomic<int> running{0}, most{0}, fewest_cores{INT_MAX};
  void note(const TaskContext& context) {
    most = std::max(most.load(), ++running);
    fewest_cores = std::min(fewest_cores.load(), context.cores);
    --running;
  }
};

// With one core per task, the last of an odd number of tasks would leave a core idle.
TEST(ThreadedEngineCores, LongTasksOnTwoCoresGetBothOneAfterTheOther) {
  const int before = cpu_cores();
  set_cpu_cores(2);
  {
    EngineUser user(make_threaded_engine());
    std::vector<Var> vars(4);
    Gate gate;
    Overlap seen;
    for (Var& var : vars) {
      const VarList writes{&var};
      user.engine->push(
          [&](TaskContext& context) {
            gate.pass();  // the first task holds the cores until all tasks are ready
            seen.note(context);
          },
          {{}, writes}, {.cost_ns = 200'000'000});
    }
    gate.open();
    user.engine->wait_all();
    EXPECT_EQ(seen.most.load(), 1);
    EXPECT_EQ(seen.fewest_cores.load(), 2);
  }
  set_cpu_cores(before);
}

// Two OpenMP teams on the same few cores would wait for each other's threads.
TEST(ThreadedEngineCores, ShortTasksGetAllCoresOneAfterTheOther) {
  const int before = cpu_cores();
  set_cpu_cores(4);
  {
    EngineUser user(make_threaded_engine());
    std::vector<Var> vars(8);
    Overlap seen;
    std::mutex mutex;
    std::set<std::thread::id> threads;
    for (Var& var : vars) {
      const VarList writes{&var};
      user.engine->push(
          [&](TaskContext& context) {
            seen.note(context);
            const std::lock_guard lock(mutex);
            threads.insert(std::this_thread::get_id());
          },
          {{}, writes}, {.cost_ns = 5'000'000});  // too long for the waiting thread to help
    }
    user.engine->wait_all();
    EXPECT_EQ(seen.most.load(), 1);
    EXPECT_EQ(seen.fewest_cores.load(), 4);
    EXPECT_EQ(threads.size(), 1u);
  }
  set_cpu_cores(before);
}

TEST(ThreadedEngineCores, ATaskOfUnknownCostDoesNotHoldUpTheWorkerThatComputes) {
  EngineUser user(make_threaded_engine());
  std::vector<Var> vars(2);
  Gate gate;
  std::atomic<bool> computed{false};
  user.push({}, {&vars[0]}, [&] { gate.pass(); });
  user.push({}, {&vars[1]},
            [&] {
              computed = true;
              gate.open();
            },
            {.cost_ns = 200'000'000});
  user.engine->wait_all();
  EXPECT_TRUE(computed);
}

// Loops of small operators: each task is long, none can use a second core.
TEST(ThreadedEngineCores, LongTasksOfOneCoreRunSideBySideAndLeaveTheWorkerThatComputesFree) {
  const int before = cpu_cores();
  set_cpu_cores(4);
  {
    EngineUser user(make_threaded_engine());
    std::vector<Var> vars(4);
    std::latch all(4);
    std::atomic<int> sum{0};
    for (Var& var : vars) {
      const VarList writes{&var};
      const bool last = &var == &vars.back();
      user.engine->push(
          [&](TaskContext& context) {
            sum += context.cores;
            all.arrive_and_wait();
          },
          {{}, writes}, {.cost_ns = 20'000'000, .cores = last ? 0 : 1});
    }
    user.engine->wait_all();
    EXPECT_GE(sum.load(), 4);
  }
  set_cpu_cores(before);
}

TEST(ThreadedEngineCores, AShortTaskWaitsForTheWorkerThatRunsAnotherShortOne) {
  EngineUser user(make_threaded_engine());
  std::vector<Var> vars(3);
  Gate gate, begun;
  std::mutex mutex;
  std::set<std::thread::id> threads;
  const auto note_thread = [&] {
    const std::lock_guard lock(mutex);
    threads.insert(std::this_thread::get_id());
  };
  user.push({}, {&vars[0]},
            [&] {
              note_thread();
              begun.open();
              gate.pass();
            },
            {.cost_ns = 1000});
  begun.pass();
  for (size_t i = 1; i < vars.size(); ++i) user.push({}, {&vars[i]}, note_thread, {.cost_ns = 1000});
  std::this_thread::sleep_for(std::chrono::milliseconds(10));  // time in which another worker would have begun
  gate.open();
  user.engine->wait_all();
  EXPECT_EQ(threads.size(), 1u);
}

TEST(ThreadedEngineCores, WhileAThreadPushesManyTasksOneCoreIsLeftToIt) {
  const int before = cpu_cores();
  set_cpu_cores(std::max(4, before));
  {
    EngineUser user(make_threaded_engine());
    Var var;
    Gate gate;
    std::vector<int> cores;
    user.push({}, {&var}, [&] { gate.pass(); });
    for (int i = 0; i < 20; ++i) {
      const VarList writes{&var};
      user.engine->push([&cores](TaskContext& context) { cores.push_back(context.cores); }, {{}, writes},
                        {.cost_ns = int64_t{25'000} * std::max(kSmallMachine, cpu_cores())});
    }
    gate.open();
    user.engine->wait_all();
    EXPECT_EQ(cores.front(), cpu_cores() - 1);
    EXPECT_EQ(cores.back(), cpu_cores());
  }
  set_cpu_cores(before);
}

TEST(ThreadedEngineCores, ACheapTaskRunsBesideACostlyOne) {
  EngineUser user(make_threaded_engine());
  std::vector<Var> vars(2);
  Gate gate, begun;
  std::atomic<bool> beside{false};
  user.push({}, {&vars[0]},
            [&] {
              begun.open();
              gate.pass();
            },
            {.cost_ns = 200'000'000});
  begun.pass();
  user.push({}, {&vars[1]},
            [&] {
              beside = true;
              gate.open();
            },
            {.cost_ns = 30'000});
  user.engine->wait_all();
  EXPECT_TRUE(beside);
}

TEST_F(ThreadedEngineTest, ThreadsThatComeAndGoAreCountedAll) {
  for (int t = 0; t < 20; ++t) {
    std::thread([this] {
      Var var;
      for (int i = 0; i < 10; ++i) {
        ASSERT_TRUE(begin({}, {&var}));
        finish({}, {&var});
      }
    }).join();
  }
  EXPECT_EQ(engine->counters().inlined, 200u);
}

TEST_F(ThreadedEngineTest, AnErrorWithManyUnreportedOnesDoesNotGrowForever) {
  for (int i = 0; i < 5000; ++i) {
    auto owned = std::make_shared<Var>();
    push({}, {owned.get()}, [owned] { throw ValueError({.message = "no thread waits"}); });
  }
  EXPECT_THROW(engine->wait_all(), ValueError);
  EXPECT_EQ(engine->counters().failed, 5000u);
}

// --- waits among threads that never stop pushing ------------------------------------------------------------------

TEST_F(ThreadedEngineTest, WorkersStopWhileOthersPushAllTheTime) {
  const PushRate others(*this, 3);
  for (int i = 0; i < 30; ++i) {
    engine->stop_workers();
    engine->start_workers();
  }
}

// --- without workers ----------------------------------------------------------------------------------------------

TEST_F(ThreadedEngineTest, WhileWorkersAreStoppedWaitsRunWhatTheyWaitFor) {
  Var cpu, gpu, costly;
  std::vector<int> order;
  engine->stop_workers();
  push({}, {&cpu}, [&order] { order.push_back(1); });  // unknown cost
  push({&cpu}, {&gpu}, [&order] { order.push_back(2); }, {.device = {DeviceType::kGPU, 0}});
  engine->wait_for_var(gpu);
  push({&gpu}, {&costly}, [&order] { order.push_back(3); }, {.cost_ns = 100'000'000});
  engine->wait_all();
  EXPECT_EQ(order, (std::vector{1, 2, 3}));
  engine->start_workers();
}

// Makes the creation of threads fail while it lives: their stacks would be larger than the address space.
class NoMoreThreads {
 public:
  NoMoreThreads() {
    pthread_attr_init(&attributes_);
    pthread_getattr_default_np(&attributes_);
    pthread_attr_getstacksize(&attributes_, &before_);
    pthread_attr_setstacksize(&attributes_, size_t{1} << 50);
    pthread_setattr_default_np(&attributes_);
  }
  ~NoMoreThreads() {
    pthread_attr_setstacksize(&attributes_, before_);
    pthread_setattr_default_np(&attributes_);
    pthread_attr_destroy(&attributes_);
  }
  NoMoreThreads(const NoMoreThreads&) = delete;

 private:
  pthread_attr_t attributes_;
  size_t before_ = 0;
};

TEST_F(ThreadedEngineTest, WhereTheSystemGivesNoThreadsThePushingThreadDoesTheWork) {
  const NoMoreThreads none;
  Var x, y;
  std::vector<int> order;
  push({}, {&x}, [&order] { order.push_back(1); });
  push({&x}, {&y}, [&order] { order.push_back(2); }, {.cost_ns = 100'000'000});
  push({}, {&y}, [&order] { order.push_back(3); }, {.device = {DeviceType::kGPU, 0}});
  EXPECT_EQ(order.size(), 3u);
  {
    ASSERT_TRUE(begin({}, {&x}));
    push({&x}, {&y}, [&order] { order.push_back(4); });
    EXPECT_EQ(order.size(), 3u);
    finish({}, {&x});
  }
  push({}, {&y}, [] { throw ValueError({.message = "wrong"}); });
  EXPECT_THROW(engine->wait_to_read(y), ValueError);
  engine->wait_all();
  EXPECT_EQ(order, (std::vector{1, 2, 3, 4}));
}

TEST_F(ThreadedEngineTest, WhereTheSystemGivesOneThreadItDoesAllTheWork) {
  Var var;
  push({}, {&var}, [] {}, {.cost_ns = 10'000'000});  // too long for the waiting thread: a worker starts
  engine->wait_for_var(var);
  const NoMoreThreads none;
  Var costly;
  std::latch last(8);
  for (int i = 0; i < 4; ++i) {
    push({}, {&var}, [&last] { last.count_down(); });  // unknown cost: for the other workers, if there are any
    push({}, {&costly}, [&last] { last.count_down(); }, {.cost_ns = 10'000'000});
  }
  last.wait();  // not a wait of the engine, so this thread runs no tasks
  engine->wait_all();
}

#if !defined(__SANITIZE_THREAD__)  // its runtime does not follow a fork of a process with threads
TEST_F(ThreadedEngineTest, AForkedChildHasAWorkingEngineAndTheParentGoesOn) {
  Var var;
  std::atomic<int> ran{0};
  for (int i = 0; i < 100; ++i) push({}, {&var}, [&ran] { ++ran; });
  engine->stop_workers();
  EXPECT_EQ(ran.load(), 100);
  const pid_t child = fork();
  engine->start_workers();
  if (child == 0) threads_after_fork_in_child();
  for (int i = 0; i < 100; ++i) push({}, {&var}, [&ran] { ++ran; });
  engine->wait_all();
  if (child == 0) _exit(ran.load() == 200 && var.version() == 200 ? 0 : 1);
  EXPECT_EQ(ran.load(), 200);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST_F(ThreadedEngineTest, AForkInsideATaskLeavesTheChildAbleToExit) {
  Var var;
  int status = -1;
  push({}, {&var}, [&] {
    engine->stop_workers();  // the fork handler does the same; cannot wait for the task that calls it
    const pid_t child = fork();
    engine->start_workers();
    if (child == 0) _exit(0);
    waitpid(child, &status, 0);
  });
  engine->wait_all();
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST_F(ThreadedEngineTest, AForkInsideAnInlineRunLeavesNothingPendingInTheChild) {
  Var var;
  ASSERT_TRUE(begin({}, {&var}));
  engine->stop_workers();
  const pid_t child = fork();
  engine->start_workers();
  finish({}, {&var});
  push({}, {&var}, [] {});
  engine->wait_all();
  if (child == 0) _exit(var.version() == 2 ? 0 : 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
#endif

}  // namespace
}  // namespace hybridnet
