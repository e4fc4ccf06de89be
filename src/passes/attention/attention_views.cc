// Attention reads queries, keys and values, and writes its output, in the layout of dense layers: heads are not moved
// in front of the lengths and back, which would copy each of the four.
#include <numeric>
#include <optional>

#include "graph/control/control_flow.h"
#include "passes/attributes.h"
#include "passes/gradient/node_builders.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

const OpRef kFused{"_flash_attention"}, kFusedDropout{"_flash_attention_dropout"}, kTranspose{"transpose"},
    kSwapAxis{"SwapAxis"}, kReshape{"Reshape"};

using Axes = std::vector<int>;

// An array seen through reshapes and transposes: each of its axes joins some axes of `base`, in this order.
struct View {
  NodeEntry base;
  std::vector<Axes> axes;
};

View whole(const Graph& graph, const NodeEntry& entry) {
  View view{entry, {}};
  for (int i = 0; i < graph.spec(entry).shape.ndim(); ++i) view.axes.push_back({i});
  return view;
}

// Splits the axes of the base, in the order of `view`, into groups of the sizes in `shape`; nothing if a size ends
// within an axis.
std::optional<std::vector<Axes>> cut_again(const View& view, const Shape& base, const Shape& shape) {
  Axes all;
  for (const Axes& axes : view.axes) all.insert(all.end(), axes.begin(), axes.end());
  std::vector<Axes> result;
  size_t next = 0;
  for (int i = 0; i < shape.ndim(); ++i) {
    Axes axes;
    int64_t size = 1;
    while (next < all.size() && (axes.empty() || size < shape[i])) {
      axes.push_back(all[next++]);
      size *= base[axes.back()];
    }
    if (size != shape[i] || axes.empty()) return std::nullopt;
    result.push_back(std::move(axes));
  }
  if (next != all.size()) return std::nullopt;
  return result;
}

View view_of(const Graph& graph, const NodeEntry& entry) {
  const Node& node = *entry.node;
  if (is_first_of(entry, kTranspose)) {
    View view = view_of(graph, node.inputs[0]);
    const int ndim = static_cast<int>(view.axes.size());
    std::vector<Axes> axes(view.axes.rbegin(), view.axes.rend());
    const AttrValue given = attribute(node, "axes");
    const auto* list = std::get_if<AttrValue::List>(&given.value);
    for (int i = 0; list != nullptr && i < static_cast<int>(list->size()); ++i) {
      const int64_t axis = std::get<int64_t>((*list)[static_cast<size_t>(i)].value);
      axes[static_cast<size_t>(i)] = view.axes[static_cast<size_t>(axis < 0 ? axis + ndim : axis)];
    }
    return {view.base, axes};
  }
  if (is_first_of(entry, kSwapAxis)) {
    View view = view_of(graph, node.inputs[0]);
    const auto axis = [&](const char* name) -> Axes& {
      const int number = static_cast<int>(integer_attribute(node, name, 0));
      return view.axes[static_cast<size_t>(number < 0 ? number + static_cast<int>(view.axes.size()) : number)];
    };
    std::swap(axis("dim1"), axis("dim2"));
    return view;
  }
  if (is_first_of(entry, kReshape)) {
    const View view = view_of(graph, node.inputs[0]);
    if (const auto axes = cut_again(view, graph.spec(view.base).shape, node.specs[0].shape)) return {view.base, *axes};
  }
  return whole(graph, entry);
}

// For an `entry` of shape (matrices..., length, size): returns the array of shape (batch..., length, heads, size) of
// which `entry` is a view with the heads in front of the lengths.
std::optional<NodeEntry> with_heads_inside(const Graph& graph, const NodeEntry& entry) {
  const View view = view_of(graph, entry);
  const int ndim = graph.spec(view.base).shape.ndim();
  if (ndim < 3 || view.axes.size() < 3) return std::nullopt;
  Axes all, wanted(static_cast<size_t>(ndim));
  for (const Axes& axes : view.axes) all.insert(all.end(), axes.begin(), axes.end());
  std::iota(wanted.begin(), wanted.end(), 0);
  std::swap(wanted[static_cast<size_t>(ndim - 3)], wanted[static_cast<size_t>(ndim - 2)]);
  const bool is_cut_well = view.axes.back().size() == 1 && view.axes[view.axes.size() - 2].size() == 1;
  // The axes in front are unchanged, or joined into one.
  const bool is_joined = view.axes.size() == 3 && ndim == 4, is_same = view.axes.size() == static_cast<size_t>(ndim);
  if (all != wanted || !is_cut_well || !(is_joined || is_same)) return std::nullopt;
  return view.base;
}

// Reshapes a mask of (batch * heads, ...) to (batch, heads, ...).
NodeEntry split_mask(Graph& graph, const NodeEntry& mask, int64_t heads, int axes, const Node& origin) {
  const Shape& shape = graph.spec(mask).shape;
  if (shape.ndim() < axes || shape[0] == 1) return mask;
  std::string split = "(-4, -1, " + std::to_string(heads);
  for (int i = 1; i < axes; ++i) split += ", 0";
  return emit(graph, kReshape, {mask}, {{"shape", split + ")"}}, &origin);
}

}  // namespace

Replacement heads_inside(Graph& graph, Node& node) {
  if (number_attribute(node, "parts", 0) != 0 || bool_attribute(node, "heads_inside", false)) return no_change();
  for (size_t i = 1; i < node.specs.size(); ++i)
    if (graph.is_used(node, static_cast<int>(i))) return no_change();
  std::vector<NodeEntry> inputs = node.inputs;
  for (size_t i = 0; i < 3; ++i) {
    const std::optional<NodeEntry> source = with_heads_inside(graph, node.inputs[i]);
    if (!source) return no_change();
    inputs[i] = *source;
  }
  const int ndim = graph.spec(inputs[0]).shape.ndim();
  for (const NodeEntry& input : std::span(inputs).first(3))
    if (graph.spec(input).shape.ndim() != ndim) return no_change();
  const bool is_joined = node.specs[0].shape.ndim() < ndim;
  if (is_joined && inputs.size() > 3) {
    const int axes = text_attribute(node, "mask_type") == "lengths" ? 2 : 3;
    inputs[3] = split_mask(graph, inputs[3], graph.spec(inputs[0]).shape[2], axes, node);
  }
  const Op& op = node.op == &kFusedDropout.op() ? kFusedDropout.op() : kFused.op();
  const NodePtr fused = graph.add(op, make_params(op, &node, {{"heads_inside", true}}), std::move(inputs), &node);
  if (const std::optional<uint64_t> stream = random_stream(node)) set_random_stream(*fused, *stream);
  Tuple axes = Tuple::scalar();
  for (int i = 0; i < ndim; ++i) axes.push_back(i == ndim - 3 ? i + 1 : i == ndim - 2 ? i - 1 : i);
  NodeEntry result = emit(graph, kTranspose, {{fused, 0}}, {{"axes", axes.str()}}, &node);
  if (is_joined) result = emit(graph, kReshape, {result}, {{"shape", "(-3, 0, 0)"}}, &node);
  return replace_with(result);
}

}  // namespace hybridnet::passes
