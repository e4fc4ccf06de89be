// Chains of reshapes and of transposes: a chain that leads back to its start disappears, another one becomes one node.
#include <algorithm>
#include <numeric>

#include "passes/attributes.h"
#include "passes/borders.h"
#include "passes/gradient/node_builders.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

const OpRef kSwapAxis{"SwapAxis"}, kSqueeze{"squeeze"}, kExpandDims{"expand_dims"};

bool is_reshaping(const Node& node) { return node.op && node.op->is_view && node.specs.size() == 1; }

std::vector<int64_t> swapped_axes(const Node& node, int ndim) {
  std::vector<int64_t> axes(static_cast<size_t>(ndim));
  std::iota(axes.begin(), axes.end(), 0);
  const auto axis = [&](const char* name) {
    const int64_t number = integer_attribute(node, name, 0);
    return static_cast<size_t>(number < 0 ? number + ndim : number);
  };
  std::swap(axes[axis("dim1")], axes[axis("dim2")]);
  return axes;
}

std::vector<int64_t> transposed_axes(const Graph& graph, const Node& node) {
  const int ndim = graph.spec(node.inputs[0]).shape.ndim();
  if (node.op == &kSwapAxis.op()) return swapped_axes(node, ndim);
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

// A transpose that moves only axes of size 1, such as that of a decoder's single query, is a view. The nodes name no
// other size, so they serve every other one.
Replacement transpose_of_ones(Graph& graph, Node& node) {
  if (graph.format(node.inputs[0]) != Format::kPlain || graph.format({NodePtr(&node), 0}) != Format::kPlain)
    return no_change();
  const std::vector<int64_t> axes = transposed_axes(graph, node);
  const Shape& from = graph.spec(node.inputs[0]).shape;
  std::vector<int64_t> moved;
  for (const int64_t axis : axes)
    if (from[static_cast<int>(axis)] != 1) moved.push_back(axis);
  if (moved.empty() || moved.size() == axes.size() || !std::is_sorted(moved.begin(), moved.end())) return no_change();
  Tuple ones = Tuple::scalar();
  for (int i = 0; i < from.ndim(); ++i)
    if (from[i] == 1) ones.push_back(i);
  NodeEntry value = emit(graph, kSqueeze, {node.inputs[0]}, {{"axis", ones.str()}}, &node);
  for (size_t i = 0; i < axes.size(); ++i)
    if (from[static_cast<int>(axes[i])] == 1)
      value = emit(graph, kExpandDims, {value}, {{"axis", std::to_string(i)}}, &node);
  return replace_with(value);
}

}  // namespace hybridnet::passes
