// The memory of plans, which a graph function shares between its signatures.
#include <algorithm>
#include <barrier>
#include <numeric>
#include <random>
#include <thread>

#include "graph/build_graph.h"
#include "hybridnet/plan.h"
#include "plan/arena_pool.h"
#include "plan/graph_callable.h"
#include "plan/plan.h"

namespace hybridnet::graph_testing {
namespace {

constexpr int64_t kUnit = 1 << 20;

Storage::Statistics now() { return Runtime::get().storage({}).statistics(); }

// The changes in the storage since this object was made. Empties the pool: blocks from other tests would be reused for
// smaller ones.
class Since {
 public:
  Since() {
    Runtime::get().storage({}).release_pool();
    before_ = now();
  }
  int64_t allocations() const { return now().allocations - before_.allocations; }
  int64_t held() const { return now().in_use - before_.in_use; }

 private:
  Storage::Statistics before_;
};

void use_once(ArenaPool& pool, int64_t bytes) {
  std::unique_ptr<ArenaPool::Arena> arena = pool.take(bytes, {});
  EXPECT_GE(arena->block.bytes, bytes);
  pool.give(std::move(arena));
}

std::vector<int64_t> lengths_in_random_order(uint32_t seed) {
  std::vector<int64_t> lengths(91);
  std::iota(lengths.begin(), lengths.end(), 10);
  std::shuffle(lengths.begin(), lengths.end(), std::mt19937(seed));
  return lengths;
}

TEST(ArenaPool, LengthsInAnyOrderTakeFewAllocationsAndLittleMoreThanTheLongest) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const Since start;
    auto pool = make_ref<ArenaPool>();
    for (const int64_t length : lengths_in_random_order(seed)) use_once(*pool, length * kUnit);
    EXPECT_LE(start.allocations(), 7);
    EXPECT_GE(start.held(), 100 * kUnit);
    EXPECT_LE(start.held(), 150 * kUnit);
  }
}

TEST(ArenaPool, GivesItsMemoryBackWhenItGoes) {
  const Since start;
  use_once(*make_ref<ArenaPool>(), kUnit);
  EXPECT_EQ(start.held(), 0);
}

TEST(ArenaPool, ShrinksWhenManyRunsNeedLessThanAQuarter) {
  const Since start;
  auto pool = make_ref<ArenaPool>();
  use_once(*pool, 96 * kUnit);
  for (int i = 0; i < 200; ++i) use_once(*pool, (i % 2 == 0 ? 20 : 10) * kUnit);
  EXPECT_EQ(start.held(), 20 * kUnit);
}

TEST(ArenaPool, KeepsItsSizeWhileALongRunComesNowAndThen) {
  const Since start;
  auto pool = make_ref<ArenaPool>();
  for (int i = 0; i < 400; ++i) use_once(*pool, (i % 40 == 0 ? 64 : 1) * kUnit);
  EXPECT_EQ(start.held(), 64 * kUnit);
  EXPECT_EQ(start.allocations(), 1);
}

TEST(ArenaPool, RunsAtOneTimeGetDifferentMemoryWhichGoesWhenOneRunIsEnough) {
  const Since start;
  auto pool = make_ref<ArenaPool>();
  std::vector<std::unique_ptr<ArenaPool::Arena>> arenas;
  for (int i = 0; i < 5; ++i) arenas.push_back(pool->take(kUnit, {}));
  for (const auto& a : arenas) {
    for (const auto& b : arenas) EXPECT_TRUE(a == b || a->block.data != b->block.data);
  }
  for (auto& arena : arenas) pool->give(std::move(arena));
  EXPECT_EQ(start.held(), 5 * kUnit);
  for (int i = 0; i < 200; ++i) use_once(*pool, kUnit);
  EXPECT_EQ(start.held(), kUnit);
}

TEST(ArenaPool, ThreadsThatComeOneAfterTheOtherUseOneArena) {
  const Since start;
  auto pool = make_ref<ArenaPool>();
  for (int i = 0; i < 20; ++i) std::thread([&] { use_once(*pool, kUnit); }).join();
  EXPECT_EQ(start.held(), kUnit);
  EXPECT_EQ(start.allocations(), 1);
}

TEST(ArenaPool, WhatThreadsNoLongerUseIsFreed) {
  const Since start;
  auto pool = make_ref<ArenaPool>();
  std::barrier both(2);
  const auto run = [&] {
    std::unique_ptr<ArenaPool::Arena> arena = pool->take(kUnit, {});
    both.arrive_and_wait();
    pool->give(std::move(arena));
  };
  std::thread other(run);
  run();
  other.join();
  EXPECT_EQ(start.held(), 2 * kUnit);
  for (int i = 0; i < 200; ++i) use_once(*pool, kUnit);
  EXPECT_EQ(start.held(), kUnit);
}

TEST(ArenaPool, ASmallRunInsideALargeOneDoesNotTakeItsMemory) {
  const Since start;
  auto pool = make_ref<ArenaPool>();
  for (int i = 0; i < 10; ++i) {  // like a loop's condition and body
    std::unique_ptr<ArenaPool::Arena> condition = pool->take(kUnit, {});
    use_once(*pool, 64 * kUnit);
    pool->give(std::move(condition));
  }
  EXPECT_EQ(start.held(), 65 * kUnit);
  EXPECT_EQ(start.allocations(), 2);
}

// The next plan needs three times the memory between its products.
TEST(Plan, AnArenaThatHasRoomForTheNextPlanDoesNotGrow) {
  const auto chain_of_products = [](int64_t rows, const Plan::Options& options) {
    const NodeEntry x = var("x"), w = var("w");
    const NodeEntry out = use("dot", {use("dot", {x, w}), w});
    return Plan::compile(make_graph({x, w}, {float32({rows, 64}), float32({64, 64})}, {out}), options);
  };
  Plan::Options options;
  options.keep_arena = true;
  options.arenas = make_ref<ArenaPool>();
  const Ref<Plan> first = chain_of_products(8192, options), next = chain_of_products(3 * 8192, options);
  first->make_room_for(*next);
  const NDArray x = random_array({3 * 8192, 64}, 1), w = random_array({64, 64}, 2),
                out = random_array({3 * 8192, 64}, 3);
  const Plan::InputBinding inputs[] = {{.data = x.data()}, {.data = w.data()}};
  void* const outputs[] = {out.data()};
  const Since start;
  for (const Ref<Plan>& plan : {first, next}) {
    plan->run({.inputs = inputs, .outputs = outputs, .residuals = nullptr, .rng = {}, .prepared = {}, .kept = nullptr});
    EXPECT_GE(start.held(), next->arena_bytes());
  }
  EXPECT_EQ(start.allocations(), 1);
}

TEST(GraphCallable, SignaturesShareOneArena) {
  const NodeEntry x = var("x"), w = var("w");
  const NodeEntry hidden = use("dot", {use("dot", {x, w}), w});
  CallOptions config;
  config.static_alloc = true;
  auto op = make_ref<GraphCallable>(Symbol{{use("dot", {hidden, w})}}, config);
  const NDArray weight = random_array({64, 64}, 2);
  const int64_t value = 100 * 320 * 64 * 4;  // bytes of one value between the products, for the greatest length
  const Since start;
  for (const int64_t length : lengths_in_random_order(7)) {
    const NDArray arguments[] = {random_array({length * 320, 64}, 1), weight};
    op->call(arguments)[0].wait_to_read();
  }
  engine().wait_all();
  EXPECT_GE(start.held(), 2 * value);
  EXPECT_LE(start.held(), 3 * value + kUnit);
  EXPECT_EQ(op->counts().layouts, 91u);
}

}  // namespace
}  // namespace hybridnet::graph_testing
