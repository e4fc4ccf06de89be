// Arithmetic broadcasts its operands itself: it reads them as they were before a repeat. Repeats of repeats become one.
#include <algorithm>
#include <array>
#include <optional>

#include "graph/arithmetic.h"
#include "passes/attributes.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

const OpRef kBroadcastTo{"broadcast_to"}, kBroadcastAxis{"broadcast_axis"}, kBroadcastLike{"broadcast_like"};

bool is_repeat(const Node& node) {
  const std::array<const OpRef*, 3> repeating{&kBroadcastTo, &kBroadcastAxis, &kBroadcastLike};
  return !node.is_variable() &&
         std::any_of(repeating.begin(), repeating.end(), [&](const OpRef* op) { return node.op == &op->op(); });
}

// Returns the input that `entry` repeats along axes of size 1, or `entry` itself if it is no such repeat.
NodeEntry before_repeating(const Graph& graph, const NodeEntry& entry) {
  const Node& node = *entry.node;
  if (!is_repeat(node)) return entry;
  const NodeEntry& start = node.inputs[0];
  return graph.spec(start).shape.ndim() == node.specs[0].shape.ndim() ? start : entry;
}

Shape repeated(const Shape& a, const Shape& b) {
  Shape shape = a;
  for (int i = 0; i < shape.ndim(); ++i)
    if (a[i] == 1) shape[i] = b[i];
  return shape;
}

constexpr int64_t kKept = -1;  // size of an axis that a repeat leaves as it is, also in the parameter `shape`

std::vector<int64_t> integer_list(const Node& node, const char* name) {
  std::vector<int64_t> numbers;
  const AttrValue value = attribute(node, name);
  if (const auto* items = std::get_if<AttrValue::List>(&value.value))
    for (const AttrValue& item : *items)
      if (const auto* number = std::get_if<int64_t>(&item.value)) numbers.push_back(*number);
  return numbers;
}

// The size that the parameters of a repeat give each axis. Nothing if another array gives it, or if a 0 may be a size
// or mean that the axis is kept.
std::optional<std::vector<int64_t>> given_sizes(const Node& node) {
  const Shape& shape = node.specs[0].shape;
  std::vector<int64_t> sizes(static_cast<size_t>(shape.ndim()), kKept);
  if (node.op == &kBroadcastTo.op()) {
    const std::vector<int64_t> given = integer_list(node, "shape");
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (given.at(i) == 0 && shape[static_cast<int>(i)] == 0) return std::nullopt;
      if (given[i] > 0) sizes[i] = given[i];
    }
    return sizes;
  }
  if (node.op != &kBroadcastAxis.op()) return std::nullopt;
  const std::vector<int64_t> axes = integer_list(node, "axis"), given = integer_list(node, "size");
  for (size_t i = 0; i < axes.size(); ++i) {
    if (given.at(i) == 0) return std::nullopt;
    sizes[static_cast<size_t>(normalize_axis(axes[i], shape.ndim()))] = given[i];
  }
  return sizes;
}

// True if `outer` gives a size to every axis that `inner` repeats.
bool repeats_all_again(const Graph& graph, const Node& outer, const Node& inner) {
  if (outer.op == &kBroadcastLike.op()) return attribute(outer, "lhs_axes").is_none();
  const std::optional<std::vector<int64_t>> sizes = given_sizes(outer);
  if (!sizes) return false;
  const Shape &before = graph.spec(inner.inputs[0]).shape, &after = inner.specs[0].shape;
  for (int i = 0; i < after.ndim(); ++i)
    if (before[i] != after[i] && (*sizes)[static_cast<size_t>(i)] == kKept) return false;
  return true;
}

// The repeat, without new axes, that this node repeats once more; null if there is none.
const Node* repeated_before(const Graph& graph, const Node& node) {
  const Node* inner = node.inputs[0].node.get();
  if (!is_repeat(*inner)) return nullptr;
  const int ndim = node.specs[0].shape.ndim();
  const bool same_axes = inner->specs[0].shape.ndim() == ndim && graph.spec(inner->inputs[0]).shape.ndim() == ndim;
  return same_axes ? inner : nullptr;
}

}  // namespace

// Keeps the parameters of the outer repeat: if a gradient rule has taken them from a size, that stays known.
Replacement join_repeats_joint(Graph& graph, Node& node) {
  const Node* inner = repeated_before(graph, node);
  if (inner == nullptr || !repeats_all_again(graph, node, *inner)) return no_change();
  std::vector<NodeEntry> inputs = node.inputs;
  inputs[0] = inner->inputs[0];
  return replace_with({graph.add(*node.op, node.params, std::move(inputs), &node), 0});
}

Replacement join_repeats(Graph& graph, Node& node) {
  const Node* inner = repeated_before(graph, node);
  if (inner == nullptr || inner->op == &kBroadcastLike.op()) return no_change();
  if (repeats_all_again(graph, node, *inner)) return join_repeats_joint(graph, node);
  const std::optional<std::vector<int64_t>> first = given_sizes(*inner), last = given_sizes(node);
  if (!first || !last) return no_change();
  AttrValue::List shape;
  for (size_t i = 0; i < last->size(); ++i) shape.emplace_back((*last)[i] == kKept ? (*first)[i] : (*last)[i]);
  ParamsPtr params = make_params(kBroadcastTo.op(), nullptr, {{"shape", std::move(shape)}});
  return replace_with({graph.add(kBroadcastTo.op(), std::move(params), {inner->inputs[0]}, &node), 0});
}

// x + broadcast_to(y) is x + y, with y repeated where the sum is made.
Replacement repeat_in_place(Graph& graph, Node& node) {
  const Arithmetic* arithmetic = arithmetic_of(*node.op);
  if (arithmetic == nullptr || node.inputs.size() != 2) return no_change();
  std::array<NodeEntry, 2> operands;
  for (size_t i = 0; i < 2; ++i) {
    operands[i] = before_repeating(graph, node.inputs[i]);
    // The other operand still has to give the shape of the result.
    const Shape &now = graph.spec(operands[i]).shape, &other = graph.spec(node.inputs[1 - i]).shape;
    if (now.ndim() != other.ndim() || repeated(now, other) != node.specs[0].shape) operands[i] = node.inputs[i];
  }
  if (!(operands[0] == node.inputs[0]) && !(operands[1] == node.inputs[1]) &&
      repeated(graph.spec(operands[0]).shape, graph.spec(operands[1]).shape) != node.specs[0].shape)
    operands[0] = node.inputs[0];
  if (operands[0] == node.inputs[0] && operands[1] == node.inputs[1]) return no_change();
  return replace_with({add_arithmetic(graph, *arithmetic, {operands[0], {}}, {operands[1], {}}, &node), 0});
}

}  // namespace hybridnet::passes
