// Joins quantized layers and the nodes that convert their sums to bytes.
#include "passes/attributes.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

const OpRef kConvolution{"_contrib_quantized_conv"}, kDense{"_contrib_quantized_fully_connected"},
    kFusedConvolution{"_fused_quantized_conv"}, kFusedDense{"_fused_quantized_fully_connected"},
    kAdd{"_contrib_quantized_elemwise_add"};

bool is_fused(const Node& node) { return node.op == &kFusedConvolution.op() || node.op == &kFusedDense.op(); }

// The form of a layer that returns bytes; null if there is none.
const Op* fused_form(const Node& layer) {
  if (is_fused(layer)) return layer.op;
  if (layer.op == &kConvolution.op()) return &kFusedConvolution.op();
  return layer.op == &kDense.op() ? &kFusedDense.op() : nullptr;
}

using Attributes = std::vector<std::pair<std::string, AttrValue>>;

// The node whose first three outputs, bytes and their range, are these inputs of `reader` and have no other reader;
// null if there is none.
Node* source_of(const Graph& graph, const Node& reader, std::initializer_list<size_t> inputs) {
  Node* source = nullptr;
  uint32_t output = 0;
  for (const size_t i : inputs) {
    const NodeEntry& entry = reader.inputs[i];
    if (entry.index != output++ || graph.only_reader(entry) != &reader) return nullptr;
    if (source != nullptr && source != entry.node.get()) return nullptr;
    source = entry.node.get();
  }
  return source != nullptr && !source->is_variable() ? source : nullptr;
}

// The parameters of a requantize with a known range, for the fused layer.
Attributes range_of(const Node& requantize) {
  return {{"min_calib_range", attribute(requantize, "min_calib_range")},
          {"max_calib_range", attribute(requantize, "max_calib_range")},
          {"is_unsigned", requantize.specs[0].dtype == DType::kUInt8}};
}

Replacement fused(Graph& graph, const Node& layer, const Node& last, std::vector<NodeEntry> inputs,
                  const Attributes& attrs) {
  const Op& op = *fused_form(layer);
  const NodePtr both = graph.add(op, make_params(op, &layer, attrs), std::move(inputs), &layer);
  graph.set_format({both, 0}, graph.format({NodePtr(const_cast<Node*>(&last)), 0}));
  Replacement result;
  for (uint32_t i = 0; i < 3; ++i)
    result.outputs.push_back(graph.is_used(last, static_cast<int>(i)) ? NodeEntry{both, i} : NodeEntry{});
  return result;
}

bool same_format(const Graph& graph, const NodeEntry& a, const Node& b) {
  return graph.format(a) == graph.format({NodePtr(const_cast<Node*>(&b)), 0});
}

}  // namespace

Replacement fuse_requantize(Graph& graph, Node& node) {
  if (attribute(node, "min_calib_range").is_none() || attribute(node, "max_calib_range").is_none()) return no_change();
  const Node* layer = source_of(graph, node, {0, 1, 2});
  if (layer == nullptr || is_fused(*layer) || fused_form(*layer) == nullptr ||
      !same_format(graph, node.inputs[0], node)) {
    return no_change();
  }
  return fused(graph, *layer, node, layer->inputs, range_of(node));
}

// The layer need not round to bytes before the addend is added.
Replacement fuse_quantized_addend(Graph& graph, Node& node) {
  if (attribute(node, "min_calib_range").is_none() || attribute(node, "max_calib_range").is_none()) return no_change();
  const Node* sum = source_of(graph, node, {0, 1, 2});
  if (sum == nullptr || sum->op != &kAdd.op() || !attribute(*sum, "min_calib_range").is_none()) return no_change();
  for (const size_t side : {0, 1}) {
    const size_t other = 1 - side;
    const Node* layer = source_of(graph, *sum, {side, 2 + 2 * side, 3 + 2 * side});
    if (layer == nullptr || !is_fused(*layer) || bool_attribute(*layer, "with_addend", false) ||
        bool_attribute(*layer, "relu", false) || bool_attribute(*layer, "is_unsigned", false)) {
      continue;
    }
    const NodeEntry& addend = sum->inputs[other];
    if (!(graph.spec(addend).shape == node.specs[0].shape) || !same_format(graph, addend, node)) continue;
    std::vector<NodeEntry> inputs = layer->inputs;
    for (const size_t i : {other, 2 + 2 * other, 3 + 2 * other}) inputs.push_back(sum->inputs[i]);
    Attributes attrs = range_of(node);
    attrs.emplace_back("with_addend", true);
    return fused(graph, *layer, node, std::move(inputs), attrs);
  }
  return no_change();
}

// Fuses relu of signed bytes; unsigned bytes need none.
Replacement fuse_quantized_relu(Graph& graph, Node& node) {
  const Node* layer = source_of(graph, node, {0, 1, 2});
  if (layer == nullptr || !is_fused(*layer) || !same_format(graph, node.inputs[0], node)) return no_change();
  return fused(graph, *layer, node, layer->inputs, {{"relu", true}});
}

}  // namespace hybridnet::passes
