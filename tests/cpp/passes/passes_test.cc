// Each rewrite: a graph on which it fires and one on which it must not.
#include "graph/build_graph.h"

namespace hybridnet::graph_testing {
namespace {

void run_only(Graph& graph, const std::string& name) {
  const Rewrite* rewrite = rewrite_database().find(name);
  ASSERT_NE(rewrite, nullptr) << name;
  if (rewrite->rule) {
    run_to_equilibrium(graph, {rewrite}, nullptr);
  } else {
    rewrite->pass(graph);
  }
  graph.check();
}

TEST(Merge, JoinsEqualNodesWholeConesAtOnce) {
  const NodeEntry x = var("x"), y = var("y");
  auto cone = [&] { return use("tanh", {use("elemwise_add", {x, y})}); };
  Graph graph = make_graph({x, y}, {float32({4}), float32({4})}, {use("elemwise_mul", {cone(), cone()})});
  run_only(graph, "merge");
  EXPECT_EQ(count_ops(graph, "tanh"), 1);
  EXPECT_EQ(count_ops(graph, "elemwise_add"), 1);
}

TEST(Merge, SeesOperandsOfCommutativeOpsInAnyOrder) {
  const NodeEntry x = var("x"), y = var("y");
  Graph graph =
      make_graph({x, y}, {float32({4}), float32({4})}, {use("elemwise_add", {x, y}), use("elemwise_add", {y, x})});
  run_only(graph, "merge");
  EXPECT_EQ(count_ops(graph, "elemwise_add"), 1);
}

TEST(Merge, KeepsOrderThatMattersAndParametersThatDiffer) {
  const NodeEntry x = var("x"), y = var("y");
  Graph graph = make_graph({x, y}, {float32({4}), float32({4})},
                           {use("elemwise_sub", {x, y}), use("elemwise_sub", {y, x}),
                            use("_plus_scalar", {x}, {{"scalar", "1"}}), use("_plus_scalar", {x}, {{"scalar", "2"}})});
  run_only(graph, "merge");
  EXPECT_EQ(count_ops(graph, "elemwise_sub"), 2);
  EXPECT_EQ(count_ops(graph, "_plus_scalar"), 2);
}

TEST(DropIdentity, RemovesCopies) {
  const NodeEntry x = var("x");
  Graph graph = make_graph({x}, {float32({4})}, {use("tanh", {use("identity", {x})})});
  run_only(graph, "drop_identity");
  EXPECT_EQ(graph.num_nodes(), 2u);
}

TEST(DropIdentity, KeepsWhatSeparatesAnOutputFromAnInput) {
  const NodeEntry x = var("x");
  Graph graph = make_graph({x}, {float32({4})}, {use("identity", {x})});
  run_only(graph, "drop_identity");
  EXPECT_EQ(graph.num_nodes(), 2u);
}

TEST(DropIdentity, KeepsStoppedGradientsBeforeDifferentiation) {
  const NodeEntry x = var("x");
  auto make = [&] { return make_graph({x}, {float32({4})}, {use("tanh", {use("BlockGrad", {x})})}); };
  Graph before = make();
  run_only(before, "drop_identity");
  EXPECT_EQ(count_ops(before, "BlockGrad"), 1);
}

TEST(DropTrivialView, RemovesReshapesToTheSameShape) {
  const NodeEntry x = var("x");
  Graph same = make_graph({x}, {float32({2, 3})}, {use("tanh", {use("Reshape", {x}, {{"shape", "(2, 3)"}})})});
  run_only(same, "drop_trivial_view");
  EXPECT_EQ(count_ops(same, "Reshape"), 0);
  Graph other = make_graph({x}, {float32({2, 3})}, {use("tanh", {use("Reshape", {x}, {{"shape", "(3, 2)"}})})});
  run_only(other, "drop_trivial_view");
  EXPECT_EQ(count_ops(other, "Reshape"), 1);
}

TEST(FuseElementwise, MakesOneNodeOfAChain) {
  const NodeEntry x = var("x"), a = var("a"), b = var("b");
  const NodeEntry inner = use("elemwise_add", {use("elemwise_mul", {a, x}), b});
  const NodeEntry y = use("elemwise_add", {use("elemwise_mul", {use("tanh", {inner}), use("sigmoid", {x})}), x});
  Graph graph = make_graph({x, a, b}, {float32({64}), float32({64}), float32({64})}, {y});
  run_only(graph, "fuse_elementwise");
  EXPECT_EQ(count_ops(graph, "_fused_elementwise"), 1);
  EXPECT_EQ(graph.num_nodes(), 4u);
}

TEST(FuseElementwise, GivesSeveralOutputs) {
  const NodeEntry x = var("x");
  const NodeEntry t = use("tanh", {x});
  Graph graph = make_graph({x}, {float32({64})}, {use("sigmoid", {t}), t});
  run_only(graph, "fuse_elementwise");
  EXPECT_EQ(count_ops(graph, "_fused_elementwise"), 1);
  EXPECT_EQ(graph.outputs()[0].node->num_outputs(), 2);
}

TEST(FuseElementwise, KeepsGroupsThatWouldBeReadAroundTheOutside) {
  const NodeEntry x = var("x");
  const NodeEntry t = use("tanh", {x});
  const NodeEntry total = use("sum", {t}, {{"axis", "0"}, {"keepdims", "True"}});
  const NodeEntry y = use("elemwise_mul", {t, use("broadcast_to", {total}, {{"shape", "(4, 8)"}})});
  Graph graph = make_graph({x}, {float32({4, 8})}, {y});
  run_only(graph, "fuse_elementwise");
  EXPECT_EQ(count_ops(graph, "tanh"), 1);
  EXPECT_EQ(count_ops(graph, "elemwise_mul"), 1);
}

TEST(FuseElementwise, KeepsShapesApart) {
  const NodeEntry x = var("x");
  const NodeEntry y = use("sigmoid", {use("Reshape", {use("tanh", {x})}, {{"shape", "(8, 4)"}})});
  Graph graph = make_graph({x}, {float32({4, 8})}, {y});
  run_only(graph, "fuse_elementwise");
  EXPECT_EQ(count_ops(graph, "_fused_elementwise"), 0);
}

}  // namespace
}  // namespace hybridnet::graph_testing
