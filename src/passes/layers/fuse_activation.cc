// Joins a layer and the activation behind it to one node, whose kernel applies the activation while the result is in
// registers.
#include <optional>

#include "passes/attributes.h"
#include "passes/gradient/remat.h"
#include "passes/layers/layer_epilogues.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

bool stands_apart(const Node& layer) { return layer.attrs.count(kApartAttribute) != 0; }

using Attributes = std::vector<std::pair<std::string, AttrValue>>;

// The activation of a node as parameters of the fused operators: act_type, act_alpha, act_beta.
std::optional<Attributes> activation_of(const Node& node) {
  if (!node.op->layer_activation) return std::nullopt;
  const std::optional<LayerActivation> activation = node.op->layer_activation(node.params->data());
  if (!activation) return std::nullopt;
  Attributes attributes{{"act_type", activation->type}};
  if (activation->alpha) attributes.emplace_back("act_alpha", *activation->alpha);
  if (activation->beta) attributes.emplace_back("act_beta", *activation->beta);
  return attributes;
}

}  // namespace

const Op* fused_form(const Node& layer) {
  return layer.is_variable() || layer.op->fused_layer == nullptr ? nullptr : op_registry().find(layer.op->fused_layer);
}

Replacement fuse_activation(Graph& graph, Node& node) {
  const std::optional<Attributes> activation = activation_of(node);
  if (!activation || node.inputs.size() != 1) return no_change();
  const NodeEntry& before = node.inputs[0];
  Node& layer = *before.node;
  if (layer.is_variable() || stands_apart(layer) || graph.only_reader(before) != &node ||
      !(graph.spec(before) == node.specs[0]))
    return no_change();
  const Op* fused = fused_form(layer);
  if (!fused) return no_change();
  const NodeEntry both{graph.add(*fused, make_params(*fused, &layer, *activation), layer.inputs, &layer), 0};
  graph.set_format(both, graph.format(before));
  return replace_with(both);
}

// relu(Convolution(...) + other), also without the relu: the sum is computed while the product is in registers.
Replacement fuse_addend(Graph& graph, Node& node) {
  if (node.inputs.size() != 2) return no_change();
  for (const int side : {0, 1}) {
    const NodeEntry& before = node.inputs[static_cast<size_t>(side)];
    const NodeEntry& other = node.inputs[static_cast<size_t>(1 - side)];
    Node& layer = *before.node;
    const Op* fused = fused_form(layer);
    if (!fused || stands_apart(layer) || graph.only_reader(before) != &node) continue;
    if (!(graph.spec(before) == node.specs[0]) || !(graph.spec(other) == node.specs[0])) continue;
    if (graph.format(other) != graph.format(before) || graph.label(*other.node) >= graph.label(node)) continue;
    std::vector<NodeEntry> inputs = layer.inputs;
    inputs.push_back(other);
    const NodeEntry both{graph.add(*fused, make_params(*fused, &layer, {{"with_addend", true}}), inputs, &node), 0};
    graph.set_format(both, graph.format(before));
    return replace_with(both);
  }
  return no_change();
}

// Adds relu to a layer with an addend.
Replacement fuse_activation_of_sum(Graph& graph, Node& node) {
  const std::optional<Attributes> activation = activation_of(node);
  if (!activation || node.inputs.size() != 1) return no_change();
  const NodeEntry& before = node.inputs[0];
  Node& layer = *before.node;
  if (layer.is_variable() || !bool_attribute(layer, "with_addend", false) ||
      text_attribute(layer, "act_type") != "none" || graph.only_reader(before) != &node ||
      !(graph.spec(before) == node.specs[0])) {
    return no_change();
  }
  const NodeEntry both{graph.add(*layer.op, make_params(*layer.op, &layer, *activation), layer.inputs, &layer), 0};
  graph.set_format(both, graph.format(before));
  return replace_with(both);
}

// Runs before differentiation: the gradient of the pair needs neither the activation's input nor its output.
Replacement batch_norm_relu(Graph& graph, Node& node) {
  if (node.op->name == "Activation" && text_attribute(node, "act_type") != "relu") return no_change();
  const NodeEntry& before = node.inputs[0];
  Node& norm = *before.node;
  if (norm.is_variable() || norm.op->name != "BatchNorm" || before.index != 0 || graph.only_reader(before) != &node) {
    return no_change();
  }
  const Op* fused = op_registry().find("_contrib_BatchNormWithReLU");
  if (!fused) return no_change();
  const NodePtr both = graph.add(*fused, make_params(*fused, &norm, {}), norm.inputs, &norm);
  Replacement result = replace_with({both, 0});
  for (uint32_t i = 1; i < norm.specs.size(); ++i) {  // statistics and states
    if (graph.is_used(norm, static_cast<int>(i)))
      result.others.push_back({NodeEntry{NodePtr(&norm), i}, NodeEntry{both, i}});
  }
  result.remove = {&norm};
  return result;
}

}  // namespace hybridnet::passes
