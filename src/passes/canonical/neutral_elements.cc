// Arithmetic that changes nothing: x * 1, x / 1, x - 0, x + 0, x ** 1, and sums with an array of zeros.
#include <optional>

#include "passes/attributes.h"
#include "passes/borders.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

Replacement keep_input(Graph& graph, Node& node, size_t input) {
  const NodeEntry& kept = node.inputs[input];
  if (!(graph.spec(kept) == node.specs[0])) return no_change();  // would change the dtype or the broadcast shape
  if (separates_borders(graph, node, kept)) return no_change();
  return replace_with(kept);
}

bool is_full_of(const NodeEntry& entry, std::optional<double> number) {
  const Node& node = *entry.node;
  if (!number || node.is_variable() || !node.op->fills_with) return false;
  return node.op->fills_with(node.params->data()) == number;
}

}  // namespace

Replacement neutral_scalar(Graph& graph, Node& node) {
  const std::optional<double> neutral = node.op->neutral_right;
  if (!neutral || number_attribute(node, "scalar", *neutral + 1) != *neutral) return no_change();
  return keep_input(graph, node, 0);
}

Replacement neutral_term(Graph& graph, Node& node) {
  if (node.inputs.size() != 2) return no_change();
  if (is_full_of(node.inputs[1], node.op->neutral_right)) return keep_input(graph, node, 0);
  if (is_full_of(node.inputs[0], node.op->neutral_left)) return keep_input(graph, node, 1);
  return no_change();
}

}  // namespace hybridnet::passes
