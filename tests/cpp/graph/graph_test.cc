#include <random>

#include "graph/build_graph.h"

namespace hybridnet::graph_testing {
namespace {

Graph sum_chain(int length) {
  const NodeEntry x = var("x"), y = var("y");
  NodeEntry e = x;
  for (int i = 0; i < length; ++i) e = use("elemwise_add", {e, y});
  return make_graph({x, y}, {float32({2, 3}), float32({2, 3})}, {e});
}

TEST(Node, LongChainsAreDestroyedWithoutRecursion) {
  NodeEntry e = var("x");
  for (int i = 0; i < 300000; ++i) {
    auto node = make_ref<Node>();
    node->inputs.push_back(std::move(e));
    e = {std::move(node), 0};
  }
  e = {};
}

TEST(TopologicalOrder, PutsProducersFirstAndEachNodeOnce) {
  const NodeEntry x = var("x");
  const NodeEntry a = use("elemwise_add", {x, x}), b = use("elemwise_mul", {a, x});
  const std::vector<Node*> order = topological_order({b, a});
  EXPECT_EQ(order, (std::vector<Node*>{x.node.get(), a.node.get(), b.node.get()}));
}

TEST(TopologicalOrder, ReportsACycle) {
  const NodeEntry x = var("x");
  const NodeEntry a = use("elemwise_add", {x, x}), b = use("elemwise_mul", {a, x});
  a.node->inputs[1] = b;
  EXPECT_THROW(topological_order({b}), Error);
  a.node->inputs[1] = x;  // otherwise the two nodes would keep each other alive
}

TEST(InferSpecs, FindsInputsFromOutputsAndBack) {
  const NodeEntry x = var("x"), y = var("y");
  const NodeEntry sum = use("elemwise_add", {x, y}), scaled = use("_mul_scalar", {sum}, {{"scalar", "2"}});
  SpecMap specs;
  specs[scaled] = float32({4, 5});
  EXPECT_TRUE(infer_specs({scaled}, specs, false));
  EXPECT_EQ(specs.at(x).str(), "float32(4, 5)");
  EXPECT_EQ(specs.at(y).str(), "float32(4, 5)");
}

TEST(InferSpecs, SaysWhenSomethingStaysUnknown) {
  const NodeEntry x = var("x"), y = var("y");
  const NodeEntry sum = use("elemwise_add", {x, y});
  SpecMap specs;
  EXPECT_FALSE(infer_specs({sum}, specs, false));
}

TEST(InferSpecs, ErrorsNameNodeAndLine) {
  const NodeEntry x = var("x"), y = var("y");
  const NodeEntry sum = use("elemwise_add", {x, y});
  sum.node->block = "net.body.0";
  sum.node->where = {intern_file("model.py"), 17};
  SpecMap specs;
  specs[x] = float32({2, 3});
  specs[y] = float32({2, 4});
  try {
    infer_specs({sum}, specs, false);
    FAIL() << "shapes that differ were accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.fields().node, sum.node->name);
    EXPECT_EQ(error.fields().block, "net.body.0");
    EXPECT_EQ(error.fields().where.str(), "model.py:17");
  }
}

TEST(Node, ACopySaysTheSameAndReadsOtherInputs) {
  const NodeEntry x = var("x"), y = var("y"), t = use("tanh", {x});
  t.node->attrs["__lr_mult__"] = "2";
  t.node->block = "net";
  t.node->specs = {float32({2})};
  const NodePtr copy = copy_of(*t.node, {y});
  EXPECT_EQ(copy->op, t.node->op);
  EXPECT_EQ(copy->name, t.node->name);
  EXPECT_EQ(copy->attrs, t.node->attrs);
  EXPECT_EQ(copy->block, "net");
  EXPECT_EQ(copy->inputs, std::vector<NodeEntry>{y});
  EXPECT_EQ(t.node->inputs, std::vector<NodeEntry>{x});
  EXPECT_TRUE(copy->specs.empty()) << "y may have another shape";
  x.node->constant = Ref<Object>(make_array(Shape{1}, {3.0f}).impl());
  EXPECT_EQ(copy_of(*x.node, {})->constant, x.node->constant);
}

TEST(Graph, ImportingLeavesTheOriginalAlone) {
  const NodeEntry x = var("x"), y = var("y");
  const NodeEntry sum = use("elemwise_add", {x, y});
  Graph graph = make_graph({x, y}, {float32({2}), float32({2})}, {sum});
  graph.set_input(*graph.outputs()[0].node, 1, {graph.inputs()[0], 0});
  EXPECT_TRUE(sum.node->inputs[1] == y);
  graph.check();
}

TEST(Graph, ReplaceMovesReadersAndPrunesProducers) {
  Graph graph = sum_chain(3);
  const NodeEntry last = graph.outputs()[0];
  const NodeEntry first = last.node->inputs[0].node->inputs[0];
  EXPECT_EQ(graph.num_nodes(), 5u);
  graph.replace(last, first);
  EXPECT_EQ(graph.num_nodes(), 3u);
  EXPECT_TRUE(graph.outputs()[0] == first);
  graph.check();
}

TEST(Graph, ReplaceRefusesAnotherSpec) {
  const NodeEntry x = var("x"), y = var("y");
  Graph graph = make_graph({x, y}, {float32({2}), float32({3})}, {use("tanh", {x}), use("tanh", {y})});
  EXPECT_THROW(graph.replace(graph.outputs()[0], graph.outputs()[1]), Error);
}

TEST(Graph, ReplaceThatMakesACycleReverts) {
  Graph graph = sum_chain(3);
  const uint64_t before = graph.fingerprint();
  const NodeEntry last = graph.outputs()[0];
  const NodeEntry middle = last.node->inputs[0];
  std::string why;
  EXPECT_FALSE(graph.replace_validate({{middle, last}}, {}, &why));
  EXPECT_NE(why.find("cycle"), std::string::npos) << why;
  EXPECT_EQ(graph.fingerprint(), before);
  graph.check();
}

TEST(Graph, ReplaceRevertsWhenANodeIsStillRead) {
  Graph graph = sum_chain(3);
  const uint64_t before = graph.fingerprint();
  const NodeEntry last = graph.outputs()[0];
  const NodeEntry middle = last.node->inputs[0];
  EXPECT_FALSE(graph.replace_validate({{last, middle}}, {middle.node.get()}));
  EXPECT_EQ(graph.fingerprint(), before);
  EXPECT_EQ(graph.num_nodes(), 5u);
}

TEST(Graph, RevertRestoresPrunedNodes) {
  Graph graph = sum_chain(4);
  const uint64_t before = graph.fingerprint();
  const Graph::Checkpoint start = graph.checkpoint();
  const NodeEntry last = graph.outputs()[0];
  graph.set_output(0, {graph.inputs()[1], 0});
  EXPECT_EQ(graph.num_nodes(), 2u);
  EXPECT_FALSE(graph.contains(last.node.get()));
  graph.revert(start);
  graph.release(start);
  EXPECT_EQ(graph.fingerprint(), before);
  graph.check();
}

TEST(Graph, FingerprintIgnoresNamesButSeesStructure) {
  EXPECT_EQ(sum_chain(3).fingerprint(), sum_chain(3).fingerprint());
  EXPECT_NE(sum_chain(3).fingerprint(), sum_chain(4).fingerprint());
}

TEST(Graph, ScheduleFollowsTheOrderOfMaking) {
  const NodeEntry x = var("x");
  const NodeEntry a = use("tanh", {x}), b = use("sigmoid", {x}), c = use("elemwise_add", {b, a});
  Graph graph = make_graph({x}, {float32({2})}, {a, b, c});
  std::vector<std::string> ops;
  for (const Node* node : graph.schedule()) {
    if (node->op) ops.push_back(node->op->name);
  }
  EXPECT_EQ(ops, (std::vector<std::string>{"tanh", "sigmoid", "elemwise_add"}));
}

// Insertions after one node use up the labels there; the order of all nodes must survive that.
TEST(Graph, KeepsTheOrderHoweverManyNodesAreMadeInOnePlace) {
  const NodeEntry x = var("x"), y = use("tanh", {x});
  Graph graph = make_graph({x}, {float32({2})}, {use("sigmoid", {y})});
  const Op& negative = Runtime::get().ops().at("negative");
  const NodeEntry first{graph.inputs()[0], 0}, middle = graph.outputs()[0].node->inputs[0];
  NodeEntry chain = first;
  for (int i = 0; i < 4000; ++i) {
    chain = {graph.add(negative, negative.default_params, {chain}), 0};           // each after the previous one
    graph.add(negative, negative.default_params, {i % 2 == 0 ? first : middle});  // each directly after the same node
  }
  graph.check();
  EXPECT_LT(graph.label(*chain.node), graph.label(*graph.outputs()[0].node));
  EXPECT_EQ(graph.remove_unused(), 8000);
  graph.check();
}

TEST(Graph, KeepsTheBooksOfAValueThatManyNodesRead) {
  const NodeEntry x = var("x");
  std::vector<NodeEntry> readers;
  for (int i = 0; i < 300; ++i) readers.push_back(use("tanh", {x}));
  Graph graph = make_graph({x}, {float32({2})}, readers);
  for (int i = 0; i < 300; i += 3) graph.set_output(i, {graph.inputs()[0], 0});
  graph.check();
  while (!graph.outputs().empty()) graph.remove_output(static_cast<int>(graph.outputs().size() / 2));
  graph.check();
  EXPECT_EQ(graph.num_nodes(), 1u);
}

// After any sequence of edits and reverts the internal tables equal the tables of a new graph.
TEST(Graph, KeepsItsBooksThroughRandomEdits) {
  for (uint32_t seed = 0; seed < 8; ++seed) {
    std::mt19937 random(seed);
    auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
    Graph graph = sum_chain(12);
    const Op& add = Runtime::get().ops().at("elemwise_add");
    for (int edit = 0; edit < 150; ++edit) {
      const Graph::Checkpoint start = graph.checkpoint();
      const uint64_t before = graph.fingerprint();
      for (size_t step = 0, steps = 1 + below(3); step < steps; ++step) {
        const std::vector<Node*> nodes = graph.order();
        const NodeEntry some{NodePtr(nodes[below(nodes.size())]), 0}, other{NodePtr(nodes[below(nodes.size())]), 0};
        if (below(2) == 0) {
          const NodePtr made = graph.add(add, add.default_params, {some, other});
          graph.replace_validate({{NodeEntry{NodePtr(nodes[below(nodes.size())]), 0}, NodeEntry{made, 0}}}, {});
        } else {
          graph.replace_validate({{some, other}}, {});
        }
        graph.check();
      }
      if (below(3) == 0) {
        graph.revert(start);
        graph.check();
        EXPECT_EQ(graph.fingerprint(), before);
      }
      graph.release(start);
      graph.remove_unused();
      graph.check();
      if (graph.num_nodes() < 6) graph = sum_chain(12);
    }
  }
}

}  // namespace
}  // namespace hybridnet::graph_testing
