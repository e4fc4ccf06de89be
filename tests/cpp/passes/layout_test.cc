// The values that the layout pass puts channels-last, and the copies that it makes for that.
#include "graph/build_graph.h"
#include "passes/rounding.h"

namespace hybridnet::graph_testing {
namespace {

const TextAttrs kSame3x3{{"kernel", "(3, 3)"}, {"num_filter", "16"}, {"pad", "(1, 1)"}, {"no_bias", "True"}};

struct Net {
  std::vector<NodeEntry> inputs;
  std::vector<TensorSpec> specs;
  NodeEntry input(const std::string& name, std::initializer_list<int64_t> dims) {
    inputs.push_back(var(name));
    specs.push_back(float32(dims));
    return inputs.back();
  }
  NodeEntry convolution(const NodeEntry& x, const std::string& weight) {
    return use("Convolution", {x, input(weight, {16, 16, 3, 3})}, kSame3x3);
  }
  Graph graph(const std::vector<NodeEntry>& outputs) const { return make_graph(inputs, specs, outputs); }
};

void choose(Graph& graph) {
  run_rewrite(graph, RewriteDatabase::current()->at("channels_last"));
  graph.check();
  for (const NodeEntry& output : graph.outputs()) EXPECT_EQ(graph.format(output), Format::kPlain);
}

int copies(const Graph& graph) { return count_ops(graph, "_to_channels_last") + count_ops(graph, "_to_plain"); }

int channels_last_nodes(const Graph& graph) {
  int count = 0;
  for (Node* node : graph.order()) count += graph.format({NodePtr(node), 0}) == Format::kChannelsLast ? 1 : 0;
  return count;
}

TEST(ChannelsLast, CopiesWhatEntersAndLeavesAChainOnly) {
  Net net;
  const NodeEntry x = net.input("x", {2, 16, 12, 12});
  NodeEntry e = x;
  for (int i = 0; i < 4; ++i) e = use("relu", {net.convolution(e, "w" + std::to_string(i))});
  Graph graph = net.graph({e});
  choose(graph);
  EXPECT_EQ(count_ops(graph, "_to_channels_last"), 1);
  EXPECT_EQ(count_ops(graph, "_to_plain"), 1);
  EXPECT_EQ(channels_last_nodes(graph), 9);
}

TEST(ChannelsLast, AMaximumOverSpaceAndTheWayBackNeedNoCopy) {
  Net net;
  NodeEntry e = net.convolution(net.input("x", {2, 16, 12, 12}), "w0");
  const NodeEntry largest = use("max", {e}, {{"axis", "(2, 3)"}});
  const NodeEntry back = use("_spread", {largest}, {{"shape", "(2, 16, 12, 12)"}, {"axis", "(2, 3)"}});
  e = net.convolution(use("elemwise_mul", {e, back}), "w1");
  Graph graph = net.graph({use("max", {e}, {{"axis", "(2, 3)"}, {"keepdims", "True"}})});
  choose(graph);
  EXPECT_EQ(count_ops(graph, "_to_channels_last"), 1);
  EXPECT_EQ(count_ops(graph, "_to_plain"), 0);
  graph.check();
}

TEST(ChannelsLast, OneConvolutionAloneGainsNothing) {
  Net net;
  const NodeEntry x = net.input("x", {2, 16, 12, 12});
  Graph graph = net.graph({net.convolution(x, "w")});
  choose(graph);
  EXPECT_EQ(copies(graph), 0);
  EXPECT_EQ(channels_last_nodes(graph), 0);
}

TEST(ChannelsLast, ElementwiseGraphsStayAsTheyAre) {
  Net net;
  const NodeEntry x = net.input("x", {2, 16, 12, 12});
  Graph graph = net.graph({use("relu", {use("elemwise_add", {x, use("tanh", {x})})})});
  choose(graph);
  EXPECT_EQ(channels_last_nodes(graph), 0);
}

TEST(ChannelsLast, OneCopyServesAllReaders) {
  Net net;
  const NodeEntry x = net.input("x", {2, 16, 12, 12});
  const NodeEntry a = net.convolution(x, "a"), b = net.convolution(x, "b");
  const NodeEntry sum = use("elemwise_add", {use("elemwise_add", {a, b}), x});
  Graph graph = net.graph({use("relu", {sum})});
  choose(graph);
  EXPECT_EQ(count_ops(graph, "_to_channels_last"), 1);
  EXPECT_EQ(count_ops(graph, "_to_plain"), 1);
}

TEST(ChannelsLast, TheCopyMovesBehindAPooling) {
  Net net;
  const NodeEntry x = net.input("x", {2, 16, 12, 12});
  const NodeEntry y = net.convolution(net.convolution(x, "a"), "b");
  const NodeEntry pooled = use("Pooling", {use("relu", {y})}, {{"global_pool", "True"}, {"kernel", "(1, 1)"}});
  Graph graph = net.graph({use("Flatten", {pooled})});
  choose(graph);
  ASSERT_EQ(count_ops(graph, "_to_plain"), 1);
  for (const Node* node : graph.order()) {
    if (!node->op || node->op->name != "_to_plain") continue;
    EXPECT_EQ(node->inputs[0].node->op->name, "Pooling");
  }
}

TEST(ChannelsLast, NodesWithoutThatOrderArePlain) {
  Net net;
  const NodeEntry x = net.input("x", {2, 16, 12, 12});
  const NodeEntry y = use("transpose", {net.convolution(net.convolution(x, "a"), "b")}, {{"axes", "(0, 1, 3, 2)"}});
  Graph graph = net.graph({net.convolution(net.convolution(y, "c"), "d")});
  choose(graph);
  EXPECT_EQ(count_ops(graph, "_to_channels_last"), 2);
  EXPECT_EQ(count_ops(graph, "_to_plain"), 2);
  for (Node* node : graph.order()) {
    if (!node->op || node->op->name != "transpose") continue;
    EXPECT_EQ(graph.format({NodePtr(node), 0}), Format::kPlain);
  }
}

TEST(ChannelsLast, LayoutsWithTheChannelsLastAlreadyAreLeftAlone) {
  Net net;
  const NodeEntry x = net.input("x", {2, 12, 12, 16});
  TextAttrs attrs = kSame3x3;
  attrs.emplace_back("layout", "NHWC");
  NodeEntry e = x;
  for (int i = 0; i < 3; ++i) {
    e = use("Convolution", {e, net.input("w" + std::to_string(i), {16, 3, 3, 16})}, attrs);
  }
  Graph graph = net.graph({e});
  choose(graph);
  EXPECT_EQ(copies(graph), 0);
}

// Concat, slices, scaling by channel and means over space between convolutions.
TEST(ChannelsLast, OperatorsThatNumberAxesBelongToTheIsland) {
  Net net;
  const NodeEntry x = net.input("x", {2, 16, 12, 12}), scale = net.input("scale", {1, 16, 1, 1});
  const NodeEntry a = net.convolution(x, "a"), b = net.convolution(x, "b");
  const NodeEntry both = use("Concat", {a, b}, {{"dim", "1"}});
  const NodeEntry half = use("slice_axis", {both}, {{"axis", "1"}, {"begin", "4"}, {"end", "20"}});
  const NodeEntry scaled = use("broadcast_mul", {net.convolution(half, "c"), scale});
  const NodeEntry mean = use("mean", {net.convolution(scaled, "d")}, {{"axis", "(2, 3)"}});
  Graph graph = net.graph({mean});
  choose(graph);
  EXPECT_EQ(count_ops(graph, "_to_channels_last"), 1);
  EXPECT_EQ(count_ops(graph, "_to_plain"), 0);
  graph.check();
  EXPECT_EQ(channels_last_nodes(graph), 8);  // the copy, four convolutions, Concat, slice_axis and broadcast_mul
}

TEST(ChannelsLast, SumsOverChannelsReadTheIslandAsItLies) {
  Net net;
  const NodeEntry a = net.convolution(net.input("x", {2, 16, 12, 12}), "a");
  const NodeEntry sum = use("sum", {net.convolution(a, "b")}, {{"axis", "1"}});
  Graph graph = net.graph({sum});
  choose(graph);
  EXPECT_EQ(count_ops(graph, "_to_plain"), 0);
  EXPECT_EQ(graph.format(graph.outputs()[0]), Format::kPlain);
}

TEST(ChannelsLast, SumsThatChangeTheOrderOfTheOtherAxesReadPlainImages) {
  Net net;
  const NodeEntry a = net.convolution(net.input("x", {2, 16, 12, 12}), "a");
  Graph graph = net.graph({use("sum", {net.convolution(a, "b")}, {{"axis", "0"}})});
  choose(graph);
  EXPECT_EQ(count_ops(graph, "_to_plain"), 1);
}

TEST(ChannelsLast, PlainImagesStayPlain) {
  Net net;
  const NodeEntry x = net.input("x", {2, 16, 12, 12});
  Graph graph = net.graph({use("Concat", {x, use("tanh", {x})}, {{"dim", "1"}})});
  choose(graph);
  EXPECT_EQ(channels_last_nodes(graph), 0);
}

int free_to_round(const Graph& graph) {
  const std::vector<Node*> nodes = graph.order();
  return static_cast<int>(
      std::count_if(nodes.begin(), nodes.end(), [](const Node* node) { return may_round_more(*node); }));
}

// A chain of convolutions large enough for Winograd's algorithm, channels-last.
Graph large_chain(Net& net, const char* kernel, const char* pad) {
  NodeEntry e = net.input("x", {2, 64, 24, 24});
  for (int i = 0; i < 2; ++i) {
    const NodeEntry w = net.input("w" + std::to_string(i), {64, 64, kernel[1] - '0', kernel[1] - '0'});
    e = use("Convolution", {e, w}, {{"kernel", kernel}, {"num_filter", "64"}, {"pad", pad}, {"no_bias", "True"}});
  }
  Graph graph = net.graph({e});
  choose(graph);
  run_rewrite(graph, RewriteDatabase::current()->at("winograd"));
  graph.check();
  return graph;
}

TEST(UseWinograd, TakesLarge3x3KernelsAndKeepsTheirFormat) {
  Net net;
  const Graph graph = large_chain(net, "(3, 3)", "(1, 1)");
  EXPECT_EQ(free_to_round(graph), 2);
  EXPECT_EQ(channels_last_nodes(graph), 3);
}

TEST(UseWinograd, LeavesOtherKernels) {
  Net net;
  const Graph graph = large_chain(net, "(5, 5)", "(2, 2)");
  EXPECT_EQ(free_to_round(graph), 0);
}

TEST(UseWinograd, LeavesPlainImages) {
  Net net;
  const NodeEntry x = net.input("x", {2, 64, 24, 24}), w = net.input("w", {64, 64, 3, 3});
  Graph graph =
      net.graph({use("Convolution", {x, w}, {{"kernel", "(3, 3)"}, {"num_filter", "64"}, {"no_bias", "True"}})});
  run_rewrite(graph, RewriteDatabase::current()->at("winograd"));
  EXPECT_EQ(free_to_round(graph), 0);
}

// Gradients of images with few pixels spend their time in the weights, which are in plain order.
TEST(ChannelsLast, ConvolutionsOfFewPixelsStayPlainInTraining) {
  for (const bool train : {false, true}) {
    for (const int64_t side : {2, 12}) {
      Net net;
      NodeEntry e = net.input("x", {2, 16, side, side});
      for (int i = 0; i < 4; ++i) e = use("relu", {net.convolution(e, "w" + std::to_string(i))});
      Graph graph = make_graph(net.inputs, net.specs, {e}, train);
      choose(graph);
      EXPECT_EQ(channels_last_nodes(graph), train && side == 2 ? 0 : 9) << train << " " << side;
    }
  }
}

}  // namespace
}  // namespace hybridnet::graph_testing
