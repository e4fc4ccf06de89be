// Arithmetic with a result that does not depend on x: x * 0, x - x, 0 / x, x / x.
#include <algorithm>
#include <optional>

#include "graph/arithmetic.h"
#include "graph/pattern.h"
#include "passes/gradient/node_builders.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

const OpRef kZerosLike{"zeros_like"}, kOnesLike{"ones_like"};

// Returns an entry of this spec above the node. Skips elementwise work: it need not run only to give its shape.
std::optional<NodeEntry> shape_giver(const Graph& graph, const Node& node, const TensorSpec& spec) {
  const auto with_spec = [&](const Node& reader) {
    return std::find_if(reader.inputs.begin(), reader.inputs.end(),
                        [&](const NodeEntry& input) { return graph.spec(input) == spec; });
  };
  auto found = with_spec(node);
  if (found == node.inputs.end()) return std::nullopt;
  NodeEntry giver = *found;
  while (!giver.node->is_variable() && giver.node->op->pointwise) {
    found = with_spec(*giver.node);
    if (found == giver.node->inputs.end()) break;
    giver = *found;
  }
  return giver;
}

// Returns 0 or 1 if the node has this result for every x.
std::optional<int> result_of(const Node& node) {
  const Arithmetic* arithmetic = arithmetic_of(*node.op);
  const std::vector<Operand> operands = operands_of(node);
  if (arithmetic == nullptr || operands.size() != 2) return std::nullopt;
  const Operand &left = operands[0], &right = operands[1];
  if (arithmetic->name == "mul" && (number_of(left) == 0.0 || number_of(right) == 0.0)) return 0;
  if (arithmetic->name == "sub" && left == right) return 0;
  if (arithmetic->name == "div" && left == right) return 1;
  if (arithmetic->name == "div" && number_of(left) == 0.0) return 0;
  return std::nullopt;
}

Replacement absorb_into(Graph& graph, Node& node, int number) {
  const std::optional<NodeEntry> giver = shape_giver(graph, node, node.specs[0]);
  if (!giver) return no_change();
  return replace_with(emit(graph, number == 0 ? kZerosLike : kOnesLike, {*giver}, {}, &node));
}

}  // namespace

// Integer quotients are left alone: 0 / 0 is 0 there, not 1.
Replacement absorb_integers(Graph& graph, Node& node) {
  if (!is_integer(node.specs[0].dtype) || arithmetic_of(*node.op)->name == "div") return no_change();
  const std::optional<int> result = result_of(node);
  return result ? absorb_into(graph, node, *result) : no_change();
}

// For an infinite or NaN x, and for a quotient of zeros, the result would have been NaN.
Replacement absorb(Graph& graph, Node& node) {
  if (!is_floating(node.specs[0].dtype)) return no_change();
  const std::optional<int> result = result_of(node);
  return result ? absorb_into(graph, node, *result) : no_change();
}

}  // namespace hybridnet::passes
