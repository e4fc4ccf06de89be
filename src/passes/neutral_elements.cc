// Arithmetic that changes nothing: x * 1, x / 1, x - 0, x + 0, x ** 1, and sums with an array of zeros.
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

bool is_zeros(const NodeEntry& entry) {
  const Op* op = entry.node->op;
  return op && (op->name == "_zeros" || op->name == "zeros_like");
}
bool is_ones(const NodeEntry& entry) {
  const Op* op = entry.node->op;
  return op && (op->name == "_ones" || op->name == "ones_like");
}

}  // namespace

Replacement neutral_scalar(Graph& graph, Node& node) {
  const std::string& op = node.op->name;
  const double neutral = op == "_plus_scalar" || op == "_minus_scalar" ? 0.0 : 1.0;
  if (number_attribute(node, "scalar", neutral + 1) != neutral) return no_change();
  return keep_input(graph, node, 0);
}

Replacement neutral_term(Graph& graph, Node& node) {
  const std::string& op = node.op->name;
  const bool product = op == "elemwise_mul" || op == "broadcast_mul" || op == "elemwise_div" || op == "broadcast_div";
  const bool ordered = op == "elemwise_sub" || op == "broadcast_sub" || op == "elemwise_div" || op == "broadcast_div";
  const auto neutral = product ? is_ones : is_zeros;
  if (neutral(node.inputs[1])) return keep_input(graph, node, 0);
  if (!ordered && neutral(node.inputs[0])) return keep_input(graph, node, 1);
  return no_change();
}

}  // namespace hybridnet::passes
