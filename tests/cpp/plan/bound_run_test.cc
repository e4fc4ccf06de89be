// Calls with bound arrays: they have their own memory, see writes to parameters between calls, and use more cores if
// they follow each other closely.
#include "plan/bound_run.h"

#include <thread>

#include "base/cores_for_test.h"
#include "graph/build_graph.h"

namespace hybridnet::graph_testing {
namespace {

using testing::CoresForTest;

// Convolutions whose estimated time is too short for waking a team, and dense layers.
struct Net {
  std::vector<NDArray> arrays;
  Ref<GraphCallable> function;

  Net() {
    GraphDefinition definition;
    const auto add = [&](const Shape& shape) {
      const NodeEntry variable = var("v" + std::to_string(arrays.size()));
      arrays.push_back(random_array(shape, static_cast<uint32_t>(arrays.size()) + 1));
      definition.inputs.push_back(variable.node);
      return variable;
    };
    NodeEntry e = add({1, 1, 28, 28});
    for (const int64_t channels : {20, 50}) {
      const Shape weight{channels, channels == 20 ? 1 : 20, 5, 5};
      e = use("Convolution", {e, add(weight), add({channels})},
              {{"kernel", "(5, 5)"}, {"num_filter", std::to_string(channels)}});
      e = use("relu", {e});
      e = use("Pooling", {e}, {{"kernel", "(2, 2)"}, {"stride", "(2, 2)"}, {"pool_type", "max"}});
    }
    e = use("FullyConnected", {e, add({500, 800}), add({500})}, {{"num_hidden", "500"}});
    definition.outputs = {use("FullyConnected", {e, add({10, 500}), add({10})}, {{"num_hidden", "10"}})};
    function = make_ref<GraphCallable>(std::move(definition), CallOptions{.name = "net", .static_alloc = true});
  }
  std::vector<float> called() const { return values_of(function->call(arrays, {})[0]); }
};

std::vector<float> values_after_run(BoundRun& bound) {
  bound.run();
  return values_of(bound.outputs()[0]);
}

TEST(BoundRun, MayUseTwoCoresWhereTheTeamIsAwakeWithTheSameBits) {
  const CoresForTest cores(2);
  const Net net;
  const Ref<Compilation> compiled = net.function->compilation_for_prediction(net.arrays);
  EXPECT_EQ(compiled->forward->cores(), 1);
  const Ref<Plan> prompt = net.function->awake_team_plan(*compiled);
  ASSERT_NE(prompt, nullptr);
  EXPECT_GT(prompt->cores(), 1);
  EXPECT_EQ(net.function->awake_team_plan(*compiled), prompt);
  BoundRun bound(net.function, net.arrays, {}, BoundRun::Calls::kMany);
  const std::vector<float> expected = net.called();
  for (int i = 0; i < 300; ++i) {
    bound.run();
    if (i % 50 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ASSERT_EQ(values_of(bound.outputs()[0]), expected) << "run " << i;
  }
  for (int i = 0; i < 300; ++i) bound.run();
  EXPECT_EQ(values_of(bound.outputs()[0]), expected);
}

TEST(BoundRun, HasNoSecondPlanWhereNoOperatorIsWorthTwoCores) {
  const CoresForTest cores(2);
  GraphDefinition definition;
  const NodeEntry x = var("x");
  definition.inputs = {x.node};
  definition.outputs = {use("tanh", {x})};
  const auto function = make_ref<GraphCallable>(std::move(definition), CallOptions{.name = "small"});
  const std::vector<NDArray> arrays{random_array({4}, 1)};
  EXPECT_EQ(function->awake_team_plan(*function->compilation_for_prediction(arrays)), nullptr);
}

TEST(BoundRun, SeesWhatIsWrittenToParametersBetweenRuns) {
  const Net net;
  BoundRun bound(net.function, net.arrays, {}, BoundRun::Calls::kMany);
  for (uint32_t round = 0; round < 4; ++round) {
    for (int i = 0; i < 3; ++i) EXPECT_EQ(values_after_run(bound), net.called());
    for (size_t i = 1; i < net.arrays.size(); ++i) {
      const NDArray fresh = random_array(net.arrays[i].shape(), 100 * round + static_cast<uint32_t>(i));
      net.arrays[i].copy_from(fresh.data());
    }
  }
}

TEST(BoundRun, OnManyThreadsGiveTheBitsOfOne) {
  const Net net;
  const std::vector<float> expected = net.called();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      BoundRun bound(net.function, net.arrays, {}, t % 2 ? BoundRun::Calls::kMany : BoundRun::Calls::kOne);
      for (int i = 0; i < 200; ++i) wrong += values_after_run(bound) != expected;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace hybridnet::graph_testing
