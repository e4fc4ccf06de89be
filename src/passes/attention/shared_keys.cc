// Attention whose keys and values are repeated for the heads that share them (grouped and multi-query heads) reads them
// where they are: a decoder would copy its whole cache for every word.
#include <optional>

#include "graph/control/control_flow.h"
#include "passes/attributes.h"
#include "passes/gradient/node_builders.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

const OpRef kRepeat{"repeat"}, kReshape{"Reshape"}, kSqueeze{"squeeze"},
    kRepeats[] = {OpRef{"broadcast_axis"}, OpRef{"broadcast_to"}, OpRef{"broadcast_like"}};

// `source` with the slices of its third axis from the end repeated, each `times` times in a row.
struct Repeated {
  NodeEntry source;
  bool has_axis = false;  // the repeated axis stands behind the one of the heads, with size 1
  int64_t times = 1;
};

bool repeats_an_axis(const NodeEntry& entry) {
  for (const OpRef& op : kRepeats)
    if (is_first_of(entry, op)) return true;
  return false;
}

// (..., heads, 1, length, size) -> (..., heads, times, length, size) -> (..., heads * times, length, size).
std::optional<Repeated> as_broadcast(const Graph& graph, const NodeEntry& entry) {
  if (!is_first_of(entry, kReshape) || !repeats_an_axis(entry.node->inputs[0])) return std::nullopt;
  const Node& broadcast = *entry.node->inputs[0].node;
  const Shape &from = graph.spec(broadcast.inputs[0]).shape, &to = broadcast.specs[0].shape;
  const Shape& joined = graph.spec(entry).shape;
  const int ndim = to.ndim(), axis = ndim - 3;
  if (from.ndim() != ndim || joined.ndim() != ndim - 1 || axis < 1 || from[axis] != 1) return std::nullopt;
  for (int i = 0; i < ndim; ++i)
    if (i != axis && from[i] != to[i]) return std::nullopt;
  Shape expected = Shape::scalar();
  for (int i = 0; i < ndim; ++i)
    if (i != axis) expected.push_back(i == axis - 1 ? to[i] * to[axis] : to[i]);
  if (!(expected == joined)) return std::nullopt;
  return Repeated{broadcast.inputs[0], true, to[axis]};
}

std::optional<Repeated> repeated(const Graph& graph, const NodeEntry& entry) {
  if (!is_first_of(entry, kRepeat)) return as_broadcast(graph, entry);
  const Node& node = *entry.node;
  const int ndim = graph.spec(entry).shape.ndim();
  const AttrValue axis = attribute(node, "axis");
  const auto* number = std::get_if<int64_t>(&axis.value);
  if (!number || ndim < 3 || (*number < 0 ? *number + ndim : *number) != ndim - 3) return std::nullopt;
  return Repeated{node.inputs[0], false, integer_attribute(node, "repeats", 1)};
}

NodeEntry source_of(Graph& graph, const Repeated& given, const Node& origin) {
  if (!given.has_axis) return given.source;
  return emit(graph, kSqueeze, {given.source}, {{"axis", "-3"}}, &origin);
}

}  // namespace

Replacement shared_keys(Graph& graph, Node& node) {
  if (number_attribute(node, "parts", 0) != 0 || bool_attribute(node, "heads_inside", false)) return no_change();
  if (integer_attribute(node, "shared", 1) != 1) return no_change();
  const std::optional<Repeated> key = repeated(graph, node.inputs[1]), value = repeated(graph, node.inputs[2]);
  if (!key || !value || key->times != value->times || key->times < 2) return no_change();
  std::vector<NodeEntry> inputs = node.inputs;
  inputs[1] = source_of(graph, *key, node);
  inputs[2] = source_of(graph, *value, node);
  const NodePtr made =
      graph.add(*node.op, make_params(*node.op, &node, {{"shared", key->times}}), std::move(inputs), &node);
  if (const std::optional<uint64_t> stream = random_stream(node)) set_random_stream(*made, *stream);
  Replacement result;
  for (uint32_t i = 0; i < node.specs.size(); ++i) result.outputs.push_back({made, i});
  return result;
}

}  // namespace hybridnet::passes
