// For each rewrite, a graph on which it fires and one on which it must not.
#include "graph/build_graph.h"

namespace hybridnet::graph_testing {
namespace {

void run_only(Graph& graph, const std::string& name) {
  run_rewrite(graph, RewriteDatabase::current()->at(name));
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

TEST(Merge, KeepsZerosOfEitherSignApart) {
  const NodeEntry x = var("x");
  Graph graph =
      make_graph({x}, {float32({4})},
                 {use("_mul_scalar", {x}, {{"scalar", "0.0"}}), use("_mul_scalar", {x}, {{"scalar", "-0.0"}})});
  run_only(graph, "merge");
  EXPECT_EQ(count_ops(graph, "_mul_scalar"), 2);
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

TEST(Merge, WhatServesAnOlderNodesReadersRunsAsEarlyAsItDid) {
  const NodeEntry x = var("x"), old = use("tanh", {x});
  Graph graph = make_graph({x}, {float32({4})}, {use("sigmoid", {old}), use("relu", {x})});
  const Op& tanh = Runtime::get().ops().at("tanh");
  graph.add_output({graph.add(tanh, tanh.default_params, {{graph.inputs()[0], 0}}), 0});  // in front of the old one
  run_only(graph, "merge");
  std::vector<std::string> ops;
  for (const Node* node : graph.schedule())
    if (node->op) ops.push_back(node->op->name);
  EXPECT_EQ(ops, (std::vector<std::string>{"tanh", "sigmoid", "relu"}));
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

TEST(NeutralScalar, DropsOnlyWhatChangesNothing) {
  const NodeEntry x = var("x");
  for (const auto& [op, scalar, stays] :
       std::vector<std::tuple<const char*, const char*, int>>{{"_mul_scalar", "1", 0},
                                                              {"_div_scalar", "1", 0},
                                                              {"_plus_scalar", "0", 0},
                                                              {"_minus_scalar", "0", 0},
                                                              {"_mul_scalar", "0", 1},
                                                              {"_plus_scalar", "1", 1}}) {
    Graph graph = make_graph({x}, {float32({4})}, {use("tanh", {use(op, {x}, {{"scalar", scalar}})})});
    run_only(graph, "neutral_scalar");
    EXPECT_EQ(count_ops(graph, op), stays) << op << " " << scalar;
  }
}

TEST(NeutralTerm, DropsZerosOfTheSameShapeOnly) {
  const NodeEntry x = var("x");
  Graph same = make_graph({x}, {float32({4})}, {use("tanh", {use("elemwise_add", {x, use("zeros_like", {x})})})});
  run_only(same, "neutral_term");
  EXPECT_EQ(count_ops(same, "elemwise_add"), 0);
  const NodeEntry zeros = use("_zeros", {}, {{"shape", "(3, 4)"}});
  Graph wider = make_graph({x}, {float32({4})}, {use("tanh", {use("broadcast_add", {x, zeros})})});
  run_only(wider, "neutral_term");
  EXPECT_EQ(count_ops(wider, "broadcast_add"), 1);
  Graph negated = make_graph({x}, {float32({4})}, {use("tanh", {use("elemwise_sub", {use("zeros_like", {x}), x})})});
  run_only(negated, "neutral_term");
  EXPECT_EQ(count_ops(negated, "elemwise_sub"), 1);
}

TEST(ShortenViews, DropsADetourAndKeepsAChange) {
  const NodeEntry x = var("x");
  const NodeEntry there = use("Reshape", {use("tanh", {x})}, {{"shape", "(6,)"}});
  Graph back = make_graph({x}, {float32({2, 3})}, {use("sigmoid", {use("Reshape", {there}, {{"shape", "(2, 3)"}})})});
  run_only(back, "shorten_views");
  EXPECT_EQ(count_ops(back, "Reshape"), 0);
  Graph on = make_graph({x}, {float32({2, 3})}, {use("sigmoid", {use("Reshape", {there}, {{"shape", "(3, 2)"}})})});
  run_only(on, "shorten_views");
  EXPECT_EQ(count_ops(on, "Reshape"), 2);
}

TEST(JoinTransposes, ComposesAndCancels) {
  const NodeEntry x = var("x");
  auto transpose = [](const NodeEntry& e, const char* axes) { return use("transpose", {e}, {{"axes", axes}}); };
  Graph cancel =
      make_graph({x}, {float32({2, 3, 4})}, {use("tanh", {transpose(transpose(x, "(1, 2, 0)"), "(2, 0, 1)")})});
  run_only(cancel, "join_transposes");
  EXPECT_EQ(count_ops(cancel, "transpose"), 0);
  Graph join =
      make_graph({x}, {float32({2, 3, 4})}, {use("tanh", {transpose(transpose(x, "(1, 2, 0)"), "(1, 2, 0)")})});
  run_only(join, "join_transposes");
  EXPECT_EQ(count_ops(join, "transpose"), 1);
  Graph one = make_graph({x}, {float32({2, 3, 4})}, {use("tanh", {transpose(x, "(1, 2, 0)")})});
  run_only(one, "join_transposes");
  EXPECT_EQ(count_ops(one, "transpose"), 1);
}

TEST(FoldConstants, ComputesWhatNoInputReaches) {
  const NodeEntry x = var("x");
  const NodeEntry two = use("_plus_scalar", {use("_ones", {}, {{"shape", "(4,)"}})}, {{"scalar", "1"}});
  Graph graph = make_graph({x}, {float32({4})}, {use("elemwise_mul", {x, two})});
  run_only(graph, "fold_constants");
  EXPECT_EQ(graph.num_nodes(), 3u);
  const NodePtr folded = graph.outputs()[0].node->inputs[1].node;
  ASSERT_TRUE(folded->constant);
  EXPECT_EQ(values_of(NDArray(Ref<ArrayImpl>(static_cast<ArrayImpl*>(folded->constant.get())))),
            std::vector<float>(4, 2.0f));
}

TEST(FoldConstants, LeavesWhatNobodyReads) {
  const NodeEntry x = var("x");
  Graph graph = make_graph({x}, {float32({4})}, {use("tanh", {x})});
  const Op& zeros = Runtime::get().ops().at("_zeros");
  graph.add(zeros, parse_params(zeros, {{"shape", "(3, 4)"}}, 0), {});
  EXPECT_FALSE(run_rewrite(graph, RewriteDatabase::current()->at("fold_constants")));
  EXPECT_EQ(graph.remove_unused(), 1);
}

TEST(FoldConstants, LeavesLargeResultsAndRandomDraws) {
  const NodeEntry x = var("x");
  Graph large = make_graph({x}, {float32({1024, 1024})},
                           {use("elemwise_mul", {x, use("_ones", {}, {{"shape", "(1024, 1024)"}})})});
  run_only(large, "fold_constants");
  EXPECT_EQ(count_ops(large, "_ones"), 1);
  Graph random =
      make_graph({x}, {float32({4})}, {use("elemwise_mul", {x, use("_random_uniform", {}, {{"shape", "(4,)"}})})});
  run_only(random, "fold_constants");
  EXPECT_EQ(count_ops(random, "_random_uniform"), 1);
}

TEST(FoldConstants, ComputesAChainOfAnyLengthAndKeepsWhatOthersRead) {
  const NodeEntry x = var("x");
  NodeEntry sum = use("_ones", {}, {{"shape", "(4,)"}}), middle;
  for (int i = 0; i < 200; ++i) {
    sum = use("_plus_scalar", {sum}, {{"scalar", "1"}});
    if (i == 99) middle = sum;
  }
  Graph graph = make_graph({x}, {float32({4})}, {use("elemwise_mul", {x, sum}), use("elemwise_add", {x, middle})});
  run_only(graph, "fold_constants");
  EXPECT_EQ(graph.num_nodes(), 5u);
  auto folded = [&](int i) {
    const NodePtr& node = graph.outputs()[static_cast<size_t>(i)].node->inputs[1].node;
    return values_of(NDArray(Ref<ArrayImpl>(static_cast<ArrayImpl*>(node->constant.get()))))[0];
  };
  EXPECT_EQ(folded(0), 201.0f);
  EXPECT_EQ(folded(1), 101.0f);
}

TEST(FuseActivation, JoinsALayerAndItsActivation) {
  const NodeEntry x = var("x"), w = var("w"), b = var("b");
  const NodeEntry dense = use("FullyConnected", {x, w, b}, {{"num_hidden", "5"}});
  for (const NodeEntry& act : {use("tanh", {dense}), use("relu", {dense}), use("sigmoid", {dense})}) {
    Graph graph = make_graph({x, w, b}, {float32({2, 3}), float32({5, 3}), float32({5})}, {act});
    run_only(graph, "fuse_activation");
    EXPECT_EQ(count_ops(graph, "_fused_fully_connected"), 1);
    EXPECT_EQ(graph.num_nodes(), 4u);
  }
}

TEST(FuseActivation, KeepsALayerThatOthersRead) {
  const NodeEntry x = var("x"), w = var("w"), b = var("b");
  const NodeEntry dense = use("FullyConnected", {x, w, b}, {{"num_hidden", "5"}});
  Graph graph = make_graph({x, w, b}, {float32({2, 3}), float32({5, 3}), float32({5})}, {use("relu", {dense}), dense});
  run_only(graph, "fuse_activation");
  EXPECT_EQ(count_ops(graph, "_fused_fully_connected"), 0);
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

// Two paths on which a group could be left and entered again: a short one behind many nodes, and the other way round.
TEST(FuseElementwise, FindsTheWayOutsideFromEitherEnd) {
  const NodeEntry x = var("x");
  auto outside = [](const NodeEntry& e, int length) {
    NodeEntry way = use("sum", {e}, {{"axis", "0"}, {"keepdims", "True"}});
    for (int i = 0; i < length; ++i) way = use("softmax", {way});
    return use("broadcast_to", {way}, {{"shape", "(4, 8)"}});
  };
  for (const int length : {0, 40}) {
    const NodeEntry t = use("tanh", {x});
    NodeEntry many = outside(x, 20);
    Graph graph =
        make_graph({x}, {float32({4, 8})},
                   {use("elemwise_mul", {t, outside(t, length)}), many, use("elemwise_add", {t, outside(many, 3)})});
    run_only(graph, "fuse_elementwise");
    EXPECT_EQ(count_ops(graph, "elemwise_mul"), 1) << "it would read tanh around the outside";
    EXPECT_EQ(count_ops(graph, "elemwise_add"), 0) << "what it reads besides does not depend on tanh";
  }
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
