// Nodes that are linked for the same operation share a kernel; others do not.
#include "plan/shared_kernels.h"

#include "graph/build_graph.h"
#include "passes/rounding.h"

namespace hybridnet::graph_testing {
namespace {

struct Layers {
  NodeEntry x = var("x"), v = var("v"), w = var("w"), b = var("b");
  NodeEntry dense(const NodeEntry& data, const NodeEntry& weight, const char* units = "40") const {
    return use("FullyConnected", {data, weight, b}, {{"num_hidden", units}});
  }
  Graph graph(const std::vector<NodeEntry>& outputs) const {
    return make_graph({x, v, w, b}, {float32({33, 40}), float32({40, 40}), float32({40, 40}), float32({40})}, outputs);
  }
};

// The kernels of a graph's outputs.
std::vector<Kernel*> kernels_of(const Graph& graph, bool frozen_weights = false) {
  SharedKernels kernels(graph);
  std::vector<Kernel*> found;
  std::vector<Ref<Kernel>> held;
  for (const NodeEntry& output : graph.outputs()) {
    const Node& node = *output.node;
    std::vector<TensorSpec> in;
    for (const NodeEntry& input : node.inputs) in.push_back(graph.spec(input));
    LinkContext context;
    context.params = node.params->data();
    context.in = in;
    context.out = node.specs;
    context.frozen_weights = frozen_weights;
    context.may_round_more = may_round_more(node);
    held.push_back(kernels.link(node, context));
    found.push_back(held.back().get());
  }
  return found;
}

TEST(SharedKernels, LayersOfEqualSizesShareOne) {
  const Layers layers;
  const NodeEntry first = layers.dense(layers.x, layers.w), second = layers.dense(first, layers.v);
  const std::vector<Kernel*> kernels = kernels_of(layers.graph({first, second}));
  EXPECT_EQ(kernels[0], kernels[1]);
}

TEST(SharedKernels, OtherSizesParametersAndOperatorsDoNot) {
  const Layers layers;
  const NodeEntry rows = layers.dense(layers.x, layers.w), square = layers.dense(layers.w, layers.v);
  const std::vector<Kernel*> layer = kernels_of(layers.graph({rows, square}));
  EXPECT_NE(layer[0], layer[1]);
  const auto product = [](const NodeEntry& a, const NodeEntry& b, const char* alpha) {
    return use("_scaled_product", {a, b}, {{"alpha", alpha}});
  };
  const NodeEntry first = product(layers.w, layers.v, "2"), same = product(layers.v, layers.w, "2");
  const NodeEntry other = product(layers.w, layers.v, "3");
  const std::vector<Kernel*> products = kernels_of(layers.graph({first, same, other}));
  EXPECT_EQ(products[0], products[1]);
  EXPECT_NE(products[0], products[2]);
}

TEST(SharedKernels, LayersThatPackTheirWeightsShareOneToo) {
  const Layers layers;
  const NodeEntry first = layers.dense(layers.x, layers.w), second = layers.dense(first, layers.v);
  const std::vector<Kernel*> kernels = kernels_of(layers.graph({first, second}), true);
  EXPECT_EQ(kernels[0], kernels[1]);
  const auto fused = [&](const NodeEntry& data, const NodeEntry& weight) {
    return use("_fused_fully_connected", {data, weight, layers.b}, {{"num_hidden", "40"}, {"act_type", "relu"}});
  };
  const NodeEntry one = fused(layers.x, layers.w), two = fused(one, layers.v);
  const std::vector<Kernel*> of_fused = kernels_of(layers.graph({one, two}), true);
  EXPECT_EQ(of_fused[0], of_fused[1]);
  const std::vector<Kernel*> while_training = kernels_of(layers.graph({one, two}));
  EXPECT_EQ(while_training[0], while_training[1]);
}

TEST(SharedKernels, ConvolutionsThatMayRoundMoreShareNoneWithOthers) {
  const NodeEntry x = var("x"), w = var("w");
  const TextAttrs attrs{{"kernel", "(3, 3)"}, {"num_filter", "8"}, {"no_bias", "True"}};
  const NodeEntry exact = use("Convolution", {x, w}, attrs), same = use("Convolution", {x, w}, attrs);
  const NodeEntry free = use("Convolution", {x, w}, attrs);
  allow_more_rounding(*free.node);
  const Graph graph = make_graph({x, w}, {float32({2, 8, 9, 9}), float32({8, 8, 3, 3})}, {exact, same, free});
  const std::vector<Kernel*> kernels = kernels_of(graph);
  EXPECT_EQ(kernels[0], kernels[1]);
  EXPECT_NE(kernels[0], kernels[2]);
}

}  // namespace
}  // namespace hybridnet::graph_testing
