// Arithmetic that changes nothing: x * 1, x / 1, x - 0, x + 0, x ** 1, and sums with an array of zeros.
#include "passes/attributes.h"
#include "passes/borders.h"
#include "passes/register_all.h"

namespace hybridnet::passes {
namespace {

Replacement keep_input(Graph& graph, Node& node, size_t input) {
  const NodeEntry& kept = node.inputs[input];
  if (!(graph.spec(kept) == node.specs[0])) return no_change();  // would change the dtype or the broadcast shape
  if (separates_borders(graph, node, kept)) return no_change();
  return replace_with(kept);
}

Replacement drop_scalar(Graph& graph, Node& node) {
  const std::string& op = node.op->name;
  const double neutral = op == "_plus_scalar" || op == "_minus_scalar" ? 0.0 : 1.0;
  if (number_attribute(node, "scalar", neutral + 1) != neutral) return no_change();
  return keep_input(graph, node, 0);
}

bool is_zeros(const NodeEntry& entry) {
  const Op* op = entry.node->op;
  return op && (op->name == "_zeros" || op->name == "zeros_like");
}
bool is_ones(const NodeEntry& entry) {
  const Op* op = entry.node->op;
  return op && (op->name == "_ones" || op->name == "ones_like");
}

Replacement drop_term(Graph& graph, Node& node) {
  const std::string& op = node.op->name;
  const bool product = op == "elemwise_mul" || op == "broadcast_mul" || op == "elemwise_div" || op == "broadcast_div";
  const bool ordered = op == "elemwise_sub" || op == "broadcast_sub" || op == "elemwise_div" || op == "broadcast_div";
  const auto neutral = product ? is_ones : is_zeros;
  if (neutral(node.inputs[1])) return keep_input(graph, node, 0);
  if (!ordered && neutral(node.inputs[0])) return keep_input(graph, node, 1);
  return no_change();
}

}  // namespace

void register_neutral_elements(RewriteDatabase& db) {
  for (const double position : {1.0, 21.0}) {
    const std::string suffix = position > 10 ? "_joint" : "";
    db.local("neutral_scalar" + suffix, drop_scalar)
        .tracks({"_plus_scalar", "_minus_scalar", "_mul_scalar", "_div_scalar", "_power_scalar"})
        .at(position)
        .tags({"fast_run", "canonicalize"});
    db.local("neutral_term" + suffix, drop_term)
        .tracks({"elemwise_add", "elemwise_sub", "elemwise_mul", "elemwise_div", "broadcast_add", "broadcast_sub",
                 "broadcast_mul", "broadcast_div", "_grad_add"})
        .at(position)
        .tags({"fast_run", "canonicalize"});
  }
}

}  // namespace hybridnet::passes
