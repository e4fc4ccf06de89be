// Allows 3x3 convolutions over channels-last images, forward and backward, to use algorithms whose rounding errors are
// larger than the direct sum's: Winograd's, if it is faster. Runs late, so that bias, sum and activation are in the
// node already. Exclude "winograd" if the rounding matters.
#include "passes/attributes.h"
#include "passes/rounding.h"
#include "passes/rules.h"

namespace hybridnet {
namespace {

const char kAttribute[] = "__may_round_more__";

}  // namespace

void allow_more_rounding(Node& node) { node.attrs[kAttribute] = "1"; }
bool may_round_more(const Node& node) { return node.attrs.count(kAttribute) != 0; }

namespace passes {
namespace {

bool is_3x3(const Node& node) {
  const AttrValue kernel = attribute(node, "kernel");
  return kernel.str() == AttrValue(Shape{3, 3}).str();
}

// True if the images that the operator reads or makes in channels-last memory are in float32.
bool has_float_images(const Graph& graph, const Node& node) {
  const auto fits = [&](const NodeEntry& entry) {
    return graph.format(entry) == Format::kChannelsLast && graph.spec(entry).dtype == DType::kFloat32;
  };
  for (const int i : node.op->image_inputs)
    if (i < static_cast<int>(node.inputs.size()) && !fits(node.inputs[static_cast<size_t>(i)])) return false;
  for (const int i : node.op->image_outputs)
    if (!fits({NodePtr(const_cast<Node*>(&node)), static_cast<uint32_t>(i)})) return false;
  return true;
}

}  // namespace

Replacement winograd(Graph& graph, Node& node) {
  if (may_round_more(node) || !is_3x3(node) || !has_float_images(graph, node)) return no_change();
  const NodePtr free = graph.add(*node.op, node.params, node.inputs, &node);
  free->attrs = node.attrs;
  allow_more_rounding(*free);
  Replacement replacement;
  for (uint32_t i = 0; i < node.specs.size(); ++i) {
    graph.set_format({free, i}, graph.format({NodePtr(&node), i}));
    replacement.outputs.push_back({free, i});
  }
  return replacement;
}

}  // namespace passes
}  // namespace hybridnet
