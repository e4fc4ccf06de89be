// Rewrites of prediction graphs: BatchNorm folded into weights, sums and activations fused into convolutions, and
// values that are computed once per set of parameters.
#include <set>

#include "graph/build_graph.h"
#include "hybridnet/runtime.h"
#include "passes/preparation.h"
#include "plan/plan.h"

namespace hybridnet::graph_testing {
namespace {

void run_rules(Graph& graph, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    run_rewrite(graph, RewriteDatabase::current()->at(name));
    graph.check();
  }
}

struct Net {
  std::vector<NodeEntry> inputs;
  std::vector<TensorSpec> specs;
  NodeEntry input(const std::string& name, std::initializer_list<int64_t> dims) {
    inputs.push_back(var(name));
    specs.push_back(float32(dims));
    return inputs.back();
  }
  NodeEntry convolution(const NodeEntry& x, const std::string& name, bool bias = false) {
    std::vector<NodeEntry> in{x, input(name + "_weight", {4, 4, 3, 3})};
    if (bias) in.push_back(input(name + "_bias", {4}));
    return use("Convolution", in,
               {{"kernel", "(3, 3)"}, {"num_filter", "4"}, {"pad", "(1, 1)"}, {"no_bias", bias ? "False" : "True"}});
  }
  NodeEntry norm(const NodeEntry& x, const std::string& name, TextAttrs attrs = {}) {
    return use("BatchNorm",
               {x, input(name + "_gamma", {4}), input(name + "_beta", {4}), input(name + "_mean", {4}),
                input(name + "_var", {4})},
               std::move(attrs));
  }
  Graph graph(const std::vector<NodeEntry>& outputs, bool train = false) const {
    return make_graph(inputs, specs, outputs, train);
  }
};

TEST(ConvBnFold, MakesOneLayerOfTwo) {
  for (const bool bias : {false, true}) {
    Net net;
    const NodeEntry x = net.input("x", {2, 4, 5, 5});
    Graph graph = net.graph({net.norm(net.convolution(x, "c", bias), "n", {{"fix_gamma", "False"}})});
    run_rules(graph, {"conv_bn_fold"});
    EXPECT_EQ(count_ops(graph, "BatchNorm"), 0);
    EXPECT_EQ(count_ops(graph, "Convolution"), 1);
    EXPECT_TRUE(has_preparation(graph));
  }
}

TEST(ConvBnFold, LeavesTraining) {
  Net net;
  const NodeEntry x = net.input("x", {2, 4, 5, 5});
  Graph graph = net.graph({net.norm(net.convolution(x, "c"), "n")}, true);
  run_rules(graph, {"conv_bn_fold"});
  EXPECT_EQ(count_ops(graph, "BatchNorm"), 1);
}

TEST(ConvBnFold, LeavesAConvolutionThatOthersRead) {
  Net net;
  const NodeEntry x = net.input("x", {2, 4, 5, 5});
  const NodeEntry y = net.convolution(x, "c");
  Graph graph = net.graph({net.norm(y, "n"), use("tanh", {y})});
  run_rules(graph, {"conv_bn_fold"});
  EXPECT_EQ(count_ops(graph, "BatchNorm"), 1);
}

TEST(ConvBnFold, LeavesAnotherAxis) {
  Net net;
  const NodeEntry x = net.input("x", {2, 4, 4, 4});
  Graph graph = net.graph({net.norm(net.convolution(x, "c"), "n", {{"axis", "2"}})});
  run_rules(graph, {"conv_bn_fold"});
  EXPECT_EQ(count_ops(graph, "BatchNorm"), 1);
}

TEST(ConvBnFold, LeavesWeightsThatAreComputed) {
  Net net;
  const NodeEntry x = net.input("x", {2, 4, 5, 5});
  const NodeEntry w = use("tanh", {net.input("w", {4, 4, 3, 3})});
  const NodeEntry y = use("Convolution", {x, w}, {{"kernel", "(3, 3)"}, {"num_filter", "4"}, {"no_bias", "True"}});
  Graph graph = net.graph({net.norm(y, "n")});
  run_rules(graph, {"conv_bn_fold"});
  EXPECT_EQ(count_ops(graph, "BatchNorm"), 1);
}

TEST(FuseAddend, TakesASumAndItsActivation) {
  Net net;
  const NodeEntry x = net.input("x", {2, 4, 5, 5});
  for (const bool left : {true, false}) {
    Net local = net;
    const NodeEntry y = local.convolution(x, "c");
    const NodeEntry sum = left ? use("elemwise_add", {y, x}) : use("elemwise_add", {x, y});
    Graph graph = local.graph({use("relu", {sum})});
    run_rules(graph, {"fuse_activation", "fuse_addend", "fuse_activation_of_sum"});
    EXPECT_EQ(count_ops(graph, "_fused_convolution"), 1);
    EXPECT_EQ(count_ops(graph, "relu") + count_ops(graph, "elemwise_add") + count_ops(graph, "Convolution"), 0);
  }
}

TEST(FuseAddend, TakesTheSumAndTheActivationIntoADenseLayer) {
  Net net;
  const NodeEntry x = net.input("x", {40, 4}), w = net.input("w", {8, 4}), b = net.input("b", {8});
  const NodeEntry y = net.input("y", {40, 8});
  const NodeEntry dense = use("FullyConnected", {x, w, b}, {{"num_hidden", "8"}});
  for (const bool left : {true, false}) {
    const NodeEntry sum = left ? use("elemwise_add", {dense, y}) : use("elemwise_add", {y, dense});
    Net local = net;
    Graph graph = local.graph({use("tanh", {sum})});
    run_rules(graph, {"fuse_activation", "fuse_addend", "fuse_activation_of_sum"});
    EXPECT_EQ(count_ops(graph, "_fused_fully_connected"), 1);
    EXPECT_EQ(count_ops(graph, "tanh") + count_ops(graph, "elemwise_add") + count_ops(graph, "FullyConnected"), 0);
  }
}

TEST(FuseAddend, LeavesADenseLayerThatOthersRead) {
  Net net;
  const NodeEntry x = net.input("x", {40, 4}), w = net.input("w", {8, 4}), y = net.input("y", {40, 8});
  const NodeEntry dense = use("FullyConnected", {x, w}, {{"num_hidden", "8"}, {"no_bias", "True"}});
  Graph graph = net.graph({use("elemwise_add", {dense, y}), use("tanh", {dense})});
  run_rules(graph, {"fuse_addend"});
  EXPECT_EQ(count_ops(graph, "_fused_fully_connected"), 0);
}

TEST(FuseAddend, LeavesBroadcastSumsAndValuesThatOthersRead) {
  Net net;
  const NodeEntry x = net.input("x", {2, 4, 5, 5}), b = net.input("b", {1, 4, 1, 1});
  const NodeEntry y = net.convolution(x, "c"), z = net.convolution(x, "d");
  Graph graph = net.graph({use("broadcast_add", {y, b}), use("elemwise_add", {z, x}), use("tanh", {z})});
  run_rules(graph, {"fuse_addend"});
  EXPECT_EQ(count_ops(graph, "_fused_convolution"), 0);
}

TEST(FuseAddend, ASumOfTwoConvolutionsTakesOneInto) {
  Net net;
  const NodeEntry x = net.input("x", {2, 4, 5, 5});
  Graph graph = net.graph({use("elemwise_add", {net.convolution(x, "c"), net.convolution(x, "d")})});
  run_rules(graph, {"fuse_addend"});
  EXPECT_EQ(count_ops(graph, "_fused_convolution"), 1);
  EXPECT_EQ(count_ops(graph, "Convolution"), 1);
}

TEST(Preparation, IsSharedByLayoutsForOtherBatches) {
  const auto folded = [](int64_t batch, std::vector<NDArray>* arrays) {
    Net net;
    const NodeEntry x = net.input("x", {batch, 4, 5, 5});
    Graph graph = net.graph({net.norm(net.convolution(x, "c"), "n", {{"fix_gamma", "False"}})});
    run_rules(graph, {"conv_bn_fold"});
    for (size_t i = 0; i < net.specs.size(); ++i) arrays->push_back(random_array(net.specs[i].shape, 5));
    return graph;
  };
  std::vector<NDArray> arrays, others;
  const Graph graph = folded(2, &arrays), larger = folded(3, &others);
  for (size_t i = 1; i < arrays.size(); ++i) others[i] = arrays[i];
  for (float* v = static_cast<float*>(arrays.back().data()); v < static_cast<float*>(arrays.back().data()) + 4; ++v)
    *v = std::fabs(*v) + 0.5f;
  const auto run = [&](Plan& plan, const std::vector<NDArray>& given) {
    NDArray out = NDArray::empty(given[0].shape(), DType::kFloat32);
    std::vector<Plan::InputBinding> in;
    for (const NDArray& a : given) in.push_back({a.data(), a.impl()->chunk->derived()});
    void* const outputs[] = {out.data()};
    plan.run({in, outputs, nullptr, {}, {}});
    return out;
  };
  const Ref<Plan> first = Plan::compile(graph, {}), second = Plan::lay_out(larger, {}, first->linked());
  ASSERT_NE(second, nullptr);
  run(*first, arrays);
  expect_close(run(*second, others), run(*Plan::compile(larger, {}), others), 1e-5);
  EXPECT_EQ(first->num_preparations(), 1u);
  EXPECT_EQ(second->num_preparations(), 1u);

  Net plain;  // without the preparation
  const Graph other = plain.graph({plain.convolution(plain.input("x", {3, 4, 5, 5}), "c")});
  EXPECT_EQ(Plan::lay_out(other, {}, first->linked()), nullptr);
}

TEST(Preparation, RunsOncePerSetOfParameters) {
  Net net;
  const NodeEntry x = net.input("x", {2, 4, 5, 5});
  Graph graph = net.graph({net.norm(net.convolution(x, "c"), "n", {{"fix_gamma", "False"}})});
  std::vector<NDArray> arrays;
  for (size_t i = 0; i < net.specs.size(); ++i) {
    arrays.push_back(random_array(net.specs[i].shape, static_cast<uint32_t>(i)));
  }
  for (float* v = static_cast<float*>(arrays.back().data()); v < static_cast<float*>(arrays.back().data()) + 4; ++v)
    *v = std::fabs(*v) + 0.5f;
  const auto run = [&](Plan& plan) {
    NDArray out = NDArray::empty(Shape{2, 4, 5, 5}, DType::kFloat32);
    std::vector<Plan::InputBinding> in;
    for (const NDArray& a : arrays) in.push_back({a.data(), a.impl()->chunk->derived()});
    void* const outputs[] = {out.data()};
    plan.run({in, outputs, nullptr, {}, {}});
    return out;
  };
  const NDArray expected = run(*Plan::compile(graph, {}));
  run_rules(graph, {"conv_bn_fold"});
  const Ref<Plan> plan = Plan::compile(graph, {});
  EXPECT_EQ(plan->num_instructions(), 1u);
  expect_close(run(*plan), expected, 1e-4);
  expect_close(run(*plan), expected, 1e-4);
  EXPECT_EQ(plan->num_preparations(), 1u);
  arrays[1] = random_array(arrays[1].shape(), 99);
  const NDArray changed = run(*plan);
  EXPECT_EQ(plan->num_preparations(), 2u);
  EXPECT_GT(std::fabs(values_of(changed)[0] - values_of(expected)[0]), 1e-6);
  arrays[0] = random_array(arrays[0].shape(), 98);  // data, not a parameter
  run(*plan);
  EXPECT_EQ(plan->num_preparations(), 2u);
}

TEST(PackedWeights, LayersOfOneSizeShareTheKernelAndPackOnceEach) {
  Net net;
  const auto dense = [&](const NodeEntry& x, const std::string& name) {
    return use("FullyConnected", {x, net.input(name, {64, 64})}, {{"num_hidden", "64"}, {"no_bias", "True"}});
  };
  const NodeEntry x = net.input("x", {16, 64});
  const Graph graph = net.graph({dense(dense(dense(x, "a"), "b"), "c")});
  std::vector<NDArray> arrays;
  for (size_t i = 0; i < net.specs.size(); ++i) arrays.push_back(random_array(net.specs[i].shape, 3 + i));
  const auto run = [&](Plan& plan) {
    NDArray out = NDArray::empty(Shape{16, 64}, DType::kFloat32);
    std::vector<Plan::InputBinding> in;
    for (const NDArray& a : arrays) in.push_back({a.data(), a.impl()->chunk->derived()});
    void* const outputs[] = {out.data()};
    plan.run({in, outputs, nullptr, {}, {}});
    return out;
  };
  Plan::Options frozen;
  frozen.frozen_weights = true;
  const Ref<Plan> plan = Plan::compile(graph, frozen);
  std::set<const Kernel*> kernels;
  for (const Plan::Linked::Step& step : plan->linked()->steps) kernels.insert(step.kernel.get());
  EXPECT_EQ(kernels.size(), 1u);

  const DerivedBudget& budget = Runtime::get().storage({}).derived_budget();
  const NDArray expected = run(*Plan::compile(graph, {}));
  const int64_t before = budget.bytes();
  expect_close(run(*plan), expected, 1e-4);
  const int64_t packed = budget.bytes() - before;
  EXPECT_EQ(packed % 3, 0);  // 0 if this machine packs nothing
  expect_close(run(*plan), expected, 1e-4);
  EXPECT_EQ(budget.bytes() - before, packed);
  arrays[2] = random_array(arrays[2].shape(), 99);
  expect_close(run(*plan), run(*Plan::compile(graph, {})), 1e-4);
  EXPECT_EQ(budget.bytes() - before, packed);
}

}  // namespace
}  // namespace hybridnet::graph_testing
