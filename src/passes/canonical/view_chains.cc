// Chains of reshapes and of transposes: a chain that leads back to its start disappears, another one becomes one node.
#include <algorithm>

#include "passes/attributes.h"
#include "passes/borders.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

bool is_reshaping(const Node& node) { return node.op && node.op->is_view && node.specs.size() == 1; }

std::vector<int64_t> transposed_axes(const Graph& graph, const Node& node) {
  const int ndim = graph.spec(node.inputs[0]).shape.ndim();
  std::vector<int64_t> axes;
  const AttrValue given = attribute(node, "axes");
  if (const auto* list = std::get_if<AttrValue::List>(&given.value)) {
    for (const AttrValue& axis : *list) {
      const auto* value = std::get_if<int64_t>(&axis.value);
      if (!value) return {};
      axes.push_back(*value < 0 ? *value + ndim : *value);
    }
  }
  if (axes.empty()) {
    for (int i = ndim - 1; i >= 0; --i) axes.push_back(i);
  }
  return axes.size() == static_cast<size_t>(ndim) ? axes : std::vector<int64_t>();
}

}  // namespace

// reshape(reshape(x)) with the shape of x is x; longer chains that return to an earlier spec read that value directly.
Replacement shorten_views(Graph& graph, Node& node) {
  if (!is_reshaping(node) || !is_reshaping(*node.inputs[0].node)) return no_change();
  NodeEntry start = node.inputs[0];
  while (is_reshaping(*start.node)) {
    start = start.node->inputs[0];
    if (!(graph.spec(start) == node.specs[0])) continue;
    if (separates_borders(graph, node, start)) return no_change();
    return replace_with(start);
  }
  return no_change();
}

// A shape that names all sizes, or all but one, does not depend on the shapes before it.
Replacement join_reshapes(Graph& graph, Node& node) {
  if (!is_reshaping(*node.inputs[0].node)) return no_change();
  const AttrValue shape = attribute(node, "shape");
  const auto* sizes = std::get_if<AttrValue::List>(&shape.value);
  if (sizes == nullptr || sizes->empty()) return no_change();
  for (const AttrValue& size : *sizes) {
    const auto* number = std::get_if<int64_t>(&size.value);
    if (number == nullptr || *number == 0 || *number < -1) return no_change();
  }
  NodeEntry start = node.inputs[0];
  while (is_reshaping(*start.node)) start = NodeEntry(start.node->inputs[0]);
  return replace_with({graph.add(*node.op, node.params, {start}, &node), 0});
}

Replacement join_transposes(Graph& graph, Node& node) {
  const std::vector<int64_t> outer = transposed_axes(graph, node);
  if (outer.empty()) return no_change();
  std::vector<int64_t> all = outer;
  NodeEntry start = node.inputs[0];
  const bool pair = start.node->op && start.node->op->name == "transpose";
  if (pair) {
    const std::vector<int64_t> inner = transposed_axes(graph, *start.node);
    if (inner.empty()) return no_change();
    for (size_t i = 0; i < all.size(); ++i) all[i] = inner[static_cast<size_t>(outer[i])];
    start = start.node->inputs[0];
  }
  if (std::is_sorted(all.begin(), all.end())) {
    if (separates_borders(graph, node, start)) return no_change();
    return replace_with(start);
  }
  if (!pair) return no_change();
  AttrValue::List list(all.begin(), all.end());
  return replace_with(
      {graph.add(*node.op, make_params(*node.op, nullptr, {{"axes", AttrValue(list)}}), {start}, &node), 0});
}

}  // namespace hybridnet::passes
