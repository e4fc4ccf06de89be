// The values that the rewrite `remat` computes again, in joint graphs written by hand.
#include "passes/gradient/remat.h"

#include "graph/build_graph.h"
#include "graph/control/control_flow.h"
#include "passes/gradient/gradient.h"

namespace hybridnet::graph_testing {
namespace {

constexpr int64_t kRows = 64, kColumns = 256;
const TextAttrs kProduct{{"num_hidden", "256"}, {"no_bias", "True"}};

// Forward: product, gelu, dropout, product. Backward: from a head through the dropout, with the operands of the second
// product and the input of the gelu.
struct Joint {
  NodeEntry x = var("x"), weight = var("w"), head = var("head"), product, gelu, drop, out;
  Graph graph(bool numbered = true) {
    product = use("FullyConnected", {x, weight}, kProduct);
    gelu = use("_plain_leaky_relu", {product}, {{"act_type", "gelu"}});
    drop = use("Dropout", {gelu}, {{"p", "0.5"}, {"mode", "always"}});
    if (numbered) set_random_stream(*drop.node, 3);
    out = use("FullyConnected", {drop, weight}, kProduct);
    const NodeEntry of_weight = use("dot", {head, drop}, {{"transpose_a", "True"}});
    const NodeEntry of_drop = use("_backward_Dropout", {head, {drop.node, 1}}, {{"p", "0.5"}});
    const NodeEntry of_gelu = use("elemwise_mul", {of_drop, product});
    Graph graph = make_graph({x, weight, head},
                             {float32({kRows, kColumns}), float32({kColumns, kColumns}), float32({kRows, kColumns})},
                             {out, of_weight, of_gelu});
    graph.inputs()[2]->attrs[kHeadAttribute] = "1";
    return graph;
  }
};

RematScope::Result run(Graph& graph, RematPolicy policy, std::vector<bool> readable = {}) {
  RematScope scope({.policy = policy, .is_cut = true, .readable = std::move(readable)});
  run_rewrite(graph, RewriteDatabase::current()->at("remat"));
  graph.check();
  return scope.result;
}
RematPolicy bytes(int64_t n) { return {RematPolicy::Kind::kBytes, n}; }
constexpr int64_t kValue = kRows * kColumns * 4;

TEST(Remat, WorkInFrontOfADropoutRunsAgainWithTheSameDraws) {
  Joint joint;
  Graph graph = joint.graph();
  const RematScope::Result result = run(graph, bytes(kValue));
  EXPECT_EQ(result.before, 2 * kValue + kValue / 4);
  EXPECT_EQ(result.after, kValue);  // the first product
  EXPECT_EQ(count_ops(graph, "Dropout"), 2);
  EXPECT_EQ(count_ops(graph, "_plain_leaky_relu"), 2);
  int repeats = 0;
  for (Node* node : graph.order()) repeats += !node->is_variable() && repeats_draws(*node) ? 1 : 0;
  EXPECT_EQ(repeats, 1);
}

// Forward: product, batch norm, product. Backward: gradient of the second product's weight, which reads the output of
// the norm, and gradient of the norm, which reads the first product and the statistics.
TEST(Remat, ABatchNormIsAppliedAgainWithTheStatisticsThatItFound) {
  const NodeEntry x = var("x"), weight = var("w"), head = var("head"), gamma = var("gamma"), beta = var("beta"),
                  mean = var("mean"), variance = var("variance");
  const TextAttrs options{{"fix_gamma", "False"}};
  const NodeEntry product = use("FullyConnected", {x, weight}, kProduct);
  const NodeEntry norm = use("_contrib_BatchNormWithReLU", {product, gamma, beta, mean, variance}, options);
  const NodeEntry out = use("FullyConnected", {norm, weight}, kProduct);
  const NodeEntry of_weight = use("dot", {head, norm}, {{"transpose_a", "True"}});
  const NodeEntry of_norm =
      use("_batch_norm_backward", {head, product, gamma, beta, {norm.node, 1}, {norm.node, 2}}, {{"relu", "True"}});
  const TensorSpec vector = float32({kColumns}), matrix = float32({kRows, kColumns});
  Graph graph = make_graph({x, weight, head, gamma, beta, mean, variance},
                           {matrix, float32({kColumns, kColumns}), matrix, vector, vector, vector, vector},
                           {out, of_weight, of_norm});
  graph.inputs()[2]->attrs[kHeadAttribute] = "1";
  const RematScope::Result result = run(graph, bytes(kValue + 2 * kColumns * 4));
  EXPECT_EQ(result.before, 2 * kValue + 2 * kColumns * 4);
  EXPECT_EQ(result.after, kValue + 2 * kColumns * 4);
  EXPECT_EQ(count_ops(graph, "_contrib_BatchNormWithReLU"), 1);
  EXPECT_EQ(count_ops(graph, "_batch_norm_apply"), 1);
}

// Two activations of x, one of which a late product reads; the second output is the next value of a carry, and read
// late.
Graph body_of_a_loop() {
  const NodeEntry x = var("x"), head = var("head");
  const NodeEntry operand = use("tanh", {x}), factor = use("sigmoid", {x}),
                  row = use("elemwise_mul", {operand, factor}), next = use("_plus_scalar", {row}, {{"scalar", "1"}});
  const NodeEntry of_weight = use("dot", {head, operand}, {{"transpose_a", "True"}});
  const NodeEntry of_factor = use("elemwise_mul", {head, factor}), of_x = use("elemwise_mul", {head, x}),
                  of_next = use("elemwise_mul", {head, next});
  Graph graph = make_graph({x, head}, {float32({kRows, kColumns}), float32({kRows, kColumns})},
                           {row, next, of_weight, of_factor, of_x, of_next});
  graph.inputs()[1]->attrs[kHeadAttribute] = "1";
  return graph;
}

TEST(Remat, LoopsKeepOperandsOfLateProductsWhichAddUpOverStackedRows) {
  Graph graph = body_of_a_loop();
  RematScope scope({.policy = bytes(0), .is_cut = true, .readable = {false, false}, .body = {{.outs = 1}}});
  run_rewrite(graph, RewriteDatabase::current()->at("remat"));
  graph.check();
  EXPECT_EQ(scope.result.before, 3 * kValue);  // a loop has only the last value of the next carry
  EXPECT_EQ(scope.result.after, kValue);
  EXPECT_EQ(count_ops(graph, "tanh"), 1);
  EXPECT_EQ(count_ops(graph, "sigmoid"), 2);
  Graph outside = body_of_a_loop();
  EXPECT_EQ(run(outside, bytes(0)).after, 0);
}

TEST(Remat, CopiesDoNotMergeWithWhatTheyCopy) {
  Joint joint;
  Graph graph = joint.graph();
  run(graph, bytes(kValue));
  run_rewrite(graph, RewriteDatabase::current()->at("merge", Stage::kCleanJoint));
  EXPECT_EQ(count_ops(graph, "_plain_leaky_relu"), 2);
}

TEST(Remat, ProductsAreMadeAgainAtLast) {
  Joint joint;
  Graph graph = joint.graph();
  EXPECT_EQ(run(graph, bytes(0)).after, 0);
  EXPECT_EQ(count_ops(graph, "FullyConnected"), 3);
}

TEST(Remat, RandomNodesWithoutAStreamAreKept) {
  Joint joint;
  Graph graph = joint.graph(false);
  for (Node* node : graph.order()) clear_random_stream(*node);
  run(graph, bytes(0));
  EXPECT_EQ(count_ops(graph, "Dropout"), 1);
}

TEST(Remat, NothingHappensOutsideOfATraining) {
  Joint joint;
  Graph graph = joint.graph();
  run_rewrite(graph, RewriteDatabase::current()->at("remat"));
  EXPECT_EQ(count_ops(graph, "Dropout"), 1);
  EXPECT_FALSE(run(graph, {RematPolicy::Kind::kNone, 0}).ran);
  EXPECT_EQ(count_ops(graph, "Dropout"), 1);
}

TEST(Remat, InputsThatTheGradientDoesNotReadAreLeftToTheCaller) {
  const NodeEntry x = var("x"), head = var("head");
  const NodeEntry y = use("exp", {x});
  const auto made = [&] {
    Graph graph = make_graph({x, head}, {float32({kRows, kColumns}), float32({kRows, kColumns})},
                             {use("sum", {y}), use("elemwise_mul", {head, y})});
    graph.inputs()[1]->attrs[kHeadAttribute] = "1";
    return graph;
  };
  Graph graph = made(), free = made();
  run(graph, bytes(0), {false, true});
  EXPECT_EQ(count_ops(graph, "exp"), 1);
  run(free, bytes(0), {true, true});
  EXPECT_EQ(count_ops(free, "exp"), 2);
}

TEST(Remat, WhatTheBackwardRunDoesNotNeedStays) {
  const NodeEntry x = var("x");
  Graph graph = make_graph({x}, {float32({kRows, kColumns})}, {use("exp", {use("exp", {x})})});
  EXPECT_EQ(run(graph, bytes(0)).before, 0);
  EXPECT_EQ(count_ops(graph, "exp"), 2);
}

TEST(Remat, ThePolicyIsAWordOrANumber) {
  EXPECT_EQ(RematPolicy::parse("auto").kind, RematPolicy::Kind::kAuto);
  EXPECT_EQ(RematPolicy::parse("none").kind, RematPolicy::Kind::kNone);
  EXPECT_EQ(RematPolicy::parse("4096").bytes, 4096);
  for (const char* text : {"", "-1", "4096 ", "much", "99999999999999999999"})
    EXPECT_THROW(RematPolicy::parse(text), ParamError) << text;
}

}  // namespace
}  // namespace hybridnet::graph_testing
