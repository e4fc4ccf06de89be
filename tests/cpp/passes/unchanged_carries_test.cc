#include <gtest/gtest.h>

#include "graph/build_graph.h"

namespace hybridnet {
namespace {

using namespace graph_testing;

// h += row * w in each iteration; w stays as it is, or becomes next_w(w) if given.
Graph loop(LoopSpec spec, NodeEntry (*next_w)(const NodeEntry& w) = nullptr) {
  Runtime::get();
  const NodeEntry x = var("x"), h = var("h"), w = var("w"), row = var("row"), state = var("state"), factor = var("w");
  const NodeEntry product = use("elemwise_mul", {row, factor});
  spec.num_seq = 1;
  spec.num_carry = 2;
  const NodeEntry made =
      use_foreach(spec, {x, h, w}, {row, state, factor},
                  {product, use("elemwise_add", {state, product}), next_w ? next_w(factor) : use("_copy", {factor})});
  return make_graph({x, h, w}, {float32({5, 3}), float32({3}), float32({3})}, {made, output(made, 1), output(made, 2)});
}

bool apply(Graph& graph) {
  const bool changed = run_rewrite(graph, RewriteDatabase::current()->at("unchanged_carries"));
  graph.check();
  return changed;
}

TEST(UnchangedCarries, ACarryThatNoIterationChangesIsReadByAllIterations) {
  Graph graph = loop({});
  ASSERT_TRUE(apply(graph));
  const Node& made = *graph.outputs()[0].node;
  EXPECT_EQ(loop_of(made).num_carry, 1);
  EXPECT_EQ(made.inputs[2].node, graph.inputs()[2]);
  EXPECT_EQ(graph.outputs()[2].node->inputs[0].node, graph.inputs()[2]);  // its last value is its first
  EXPECT_FALSE(apply(graph));
}

TEST(UnchangedCarries, ACarryThatChangesStaysOne) {
  Graph graph = loop({}, [](const NodeEntry& w) { return use("negative", {w}); });
  EXPECT_FALSE(apply(graph));
}

TEST(UnchangedCarries, WhereGradientsOfCarriesAreCutOffNothingChanges) {
  for (const LoopSpec& spec : {LoopSpec{.truncate_gradient = 2}, LoopSpec{.detach_every = 2}}) {
    Graph graph = loop(spec);
    EXPECT_FALSE(apply(graph));
  }
}

}  // namespace
}  // namespace hybridnet
