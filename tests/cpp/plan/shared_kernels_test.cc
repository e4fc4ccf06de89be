// Nodes that are linked for the same share a kernel; others do not.
#include "plan/shared_kernels.h"

#include <deque>
#include <set>

#include "graph/build_graph.h"
#include "hybridnet/threads.h"
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
    held.push_back(kernels.link(LinkRequest(graph, *output.node, Device{}, frozen_weights)));
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
  const NodeEntry product = use("dot", {layers.w, layers.v}), same = use("dot", {layers.v, layers.w});
  const NodeEntry other = use("dot", {layers.w, layers.v}, {{"transpose_a", "1"}});
  const std::vector<Kernel*> dots = kernels_of(layers.graph({product, same, other}));
  EXPECT_EQ(dots[0], dots[1]);
  EXPECT_NE(dots[0], dots[2]);
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

// Layers of 24 widths, linked on several threads.
TEST(SharedKernels, WhatIsLinkedAheadIsWhatLinkGives) {
  const NodeEntry x = var("x");
  std::vector<NodeEntry> inputs{x}, outputs;
  std::vector<TensorSpec> specs{float32({33, 40})};
  for (int64_t units = 1; units <= 24; ++units)
    for (int twice = 0; twice < 2; ++twice) {
      inputs.push_back(var("w" + std::to_string(outputs.size())));
      specs.push_back(float32({units, 40}));
      outputs.push_back(
          use("FullyConnected", {x, inputs.back()}, {{"num_hidden", std::to_string(units)}, {"no_bias", "True"}}));
    }
  const Graph graph = make_graph(inputs, specs, outputs);
  std::deque<LinkRequest> requests;
  std::vector<const LinkRequest*> wanted;
  for (const NodeEntry& output : graph.outputs())
    wanted.push_back(&requests.emplace_back(graph, *output.node, Device{}, false));
  SharedKernels kernels(graph);
  const CoreScope four(4);
  kernels.link_ahead(wanted);
  std::set<Kernel*> different;
  for (size_t i = 0; i < requests.size(); i += 2) {
    const Ref<Kernel> kernel = kernels.link(requests[i]);
    EXPECT_EQ(kernel.get(), kernels.link(requests[i + 1]).get());
    different.insert(kernel.get());
  }
  EXPECT_EQ(different.size(), 24u);
}

TEST(SharedKernels, WhatCannotBeLinkedAheadFailsWhereTheNodeIsLinked) {
  const NodeEntry x = var("x");
  std::vector<NodeEntry> outputs;
  for (int i = 0; i < 9; ++i)
    outputs.push_back(use("softmax", {x}, {{"axis", "1"}, {"temperature", std::to_string(i + 1)}}));
  const Graph graph = make_graph({x}, {float32({4, 5})}, outputs);
  std::deque<LinkRequest> requests;
  std::vector<const LinkRequest*> wanted;
  for (const NodeEntry& output : graph.outputs())
    wanted.push_back(&requests.emplace_back(graph, *output.node, Device{DeviceType::kGPU, 0}, false));
  SharedKernels kernels(graph);
  kernels.link_ahead(wanted);
  for (const LinkRequest& request : requests) EXPECT_THROW(kernels.link(request), UnsupportedError);
}

}  // namespace
}  // namespace hybridnet::graph_testing
