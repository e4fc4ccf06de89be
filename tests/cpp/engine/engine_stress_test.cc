// Many random task graphs, compared with the results of one thread that runs them in push order.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "engine/engine_fixture.h"

namespace hybridnet {
namespace {

struct Cell {
  Var var;
  uint64_t value = 1;               // guarded by var
  std::vector<int> last_of_thread;  // highest task number per pushing thread, guarded by var
};

struct Plan {
  uint64_t id;
  std::vector<int> reads, writes;
  Engine::Options options;
  bool tries_inline;
};

Plan random_plan(std::mt19937_64& random, int cells, uint64_t id) {
  std::vector<int> all(cells);
  for (int i = 0; i < cells; ++i) all[i] = i;
  std::shuffle(all.begin(), all.end(), random);
  const int reads = random() % 5;
  const int writes = 1 + random() % 3;
  Plan plan{.id = id, .reads = {}, .writes = {}, .options = {}, .tries_inline = random() % 2 == 0};
  plan.reads.assign(all.begin(), all.begin() + reads);
  plan.writes.assign(all.begin() + reads, all.begin() + reads + writes);
  plan.options.priority = static_cast<int>(random() % 3);
  plan.options.cost_ns = static_cast<int64_t>(random() % 3) * 40'000;
  if (random() % 8 == 0) plan.options.device = {DeviceType::kGPU, 0};
  return plan;
}

void compute(const Plan& plan, const std::vector<uint64_t*>& reads, const std::vector<uint64_t*>& writes) {
  uint64_t mixed = plan.id;
  for (const uint64_t* value : reads) mixed = mixed * 0x9e3779b97f4a7c15u + *value;
  for (uint64_t* value : writes) *value = *value * 31 + mixed;
}

class EngineStress : public BothEngines {
 protected:
  EngineStress() {
    for (int i = 0; i < kCells; ++i) cells_.push_back(std::make_unique<Cell>());
  }

  void issue(const Plan& plan) {
    VarList read_vars, write_vars;
    std::vector<uint64_t*> reads, writes;
    for (int cell : plan.reads) {
      read_vars.push_back(&cells_[cell]->var);
      reads.push_back(&cells_[cell]->value);
    }
    for (int cell : plan.writes) {
      write_vars.push_back(&cells_[cell]->var);
      writes.push_back(&cells_[cell]->value);
    }
    const Engine::Access access{read_vars, write_vars};
    if (plan.tries_inline && engine->try_begin_inline(access, plan.options)) {
      compute(plan, reads, writes);
      engine->finish_inline(access);
    } else {
      engine->push([plan, reads, writes](TaskContext&) { compute(plan, reads, writes); }, access, plan.options);
    }
  }

  static constexpr int kCells = 24;
  std::vector<std::unique_ptr<Cell>> cells_;
};

INSTANTIATE_TEST_SUITE_P(Engines, EngineStress, testing::Values("threaded", "serial"),
                         [](const auto& info) { return info.param; });

TEST_P(EngineStress, RandomGraphsGiveWhatPushOrderGives) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    std::mt19937_64 random(seed);
    std::vector<uint64_t> expected;
    for (auto& cell : cells_) expected.push_back(cell->value);
    for (uint64_t id = 0; id < 2000; ++id) {
      const Plan plan = random_plan(random, kCells, id);
      std::vector<uint64_t*> reads, writes;
      for (int cell : plan.reads) reads.push_back(&expected[cell]);
      for (int cell : plan.writes) writes.push_back(&expected[cell]);
      compute(plan, reads, writes);
      issue(plan);
      if (random() % 100 == 0) engine->wait_to_read(cells_[random() % kCells]->var);
    }
    engine->wait_all();
    for (int i = 0; i < kCells; ++i) ASSERT_EQ(cells_[i]->value, expected[i]) << "seed " << seed << ", cell " << i;
  }
}

TEST_P(EngineStress, SeveralThreadsGiveWhatTheOrderOfTheirPushesGives) {
  constexpr int kThreads = 4, kTasks = 1500;
  std::vector<uint64_t> expected(kCells, 1);
  std::mutex order;  // fixes the order of pushes
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(100 + t);
      for (int i = 0; i < kTasks; ++i) {
        const Plan plan = random_plan(random, kCells, static_cast<uint64_t>(t * kTasks + i));
        {
          const std::lock_guard lock(order);
          std::vector<uint64_t*> reads, writes;
          for (int cell : plan.reads) reads.push_back(&expected[cell]);
          for (int cell : plan.writes) writes.push_back(&expected[cell]);
          compute(plan, reads, writes);
          issue(plan);
        }
        if (random() % 50 == 0) engine->wait_for_var(cells_[random() % kCells]->var);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  engine->wait_all();
  for (int i = 0; i < kCells; ++i) EXPECT_EQ(cells_[i]->value, expected[i]) << "cell " << i;
}

// Without the test's own lock: the tasks of one thread keep their order on every variable, and no task is lost.
TEST_P(EngineStress, UnorderedThreadsKeepTheirOwnOrder) {
  constexpr int kThreads = 4, kTasks = 2000;
  for (auto& cell : cells_) cell->last_of_thread.assign(kThreads, -1);
  std::atomic<uint64_t> writes_issued{0};
  std::atomic<bool> in_order{true};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(200 + t);
      for (int i = 0; i < kTasks; ++i) {
        const Plan plan = random_plan(random, kCells, 0);
        VarList read_vars, write_vars;
        for (int cell : plan.reads) read_vars.push_back(&cells_[cell]->var);
        for (int cell : plan.writes) write_vars.push_back(&cells_[cell]->var);
        auto body = [this, &in_order, writes = plan.writes, t, i] {
          for (int cell : writes) {
            int& last = cells_[cell]->last_of_thread[t];
            if (last >= i) in_order = false;
            last = i;
          }
        };
        writes_issued += plan.writes.size();
        const Engine::Access access{read_vars, write_vars};
        if (plan.tries_inline && engine->try_begin_inline(access, plan.options)) {
          body();
          engine->finish_inline(access);
        } else {
          engine->push([body](TaskContext&) { body(); }, access, plan.options);
        }
        if (random() % 200 == 0) engine->wait_all();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  engine->wait_all();
  EXPECT_TRUE(in_order.load());
  uint64_t versions = 0;
  for (auto& cell : cells_) {
    versions += cell->var.version();
    EXPECT_TRUE(cell->var.idle());
  }
  EXPECT_EQ(versions, writes_issued.load());
}

TEST_P(EngineStress, FailuresAmongManyTasksNeitherHangNorSpread) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 200; ++i) {
      Plan plan = random_plan(random, kCells, i);
      VarList reads, writes;
      for (int cell : plan.reads) reads.push_back(&cells_[cell]->var);
      for (int cell : plan.writes) writes.push_back(&cells_[cell]->var);
      const bool fails = i == 100;
      engine->push(
          [fails](TaskContext&) {
            if (fails) throw ValueError({.message = "one of many"});
          },
          {reads, writes}, plan.options);
    }
    EXPECT_THROW(engine->wait_all(), ValueError);
    for (auto& cell : cells_) engine->wait_for_var(cell->var);
  }
  EXPECT_GE(engine->counters().failed, 20u);
}

}  // namespace
}  // namespace hybridnet
