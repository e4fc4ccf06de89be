// Brings arithmetic with several spellings to one form: x * x and x ** 2 become square(x), 1 / x and x ** -1 become
// reciprocal(x). Later rules and gradients then see that form only, and equal work is found.
#include <string_view>

#include "graph/arithmetic.h"
#include "passes/attributes.h"
#include "passes/borders.h"
#include "passes/gradient/node_builders.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

const OpRef kSquare{"square"}, kReciprocal{"reciprocal"}, kNegative{"negative"}, kSqrt{"sqrt"}, kRsqrt{"rsqrt"},
    kProduct{"elemwise_mul"};

// True if input and output are floats of one dtype: with `is_int` and NumPy's promotion, other operators have other
// dtypes.
bool keeps_float(const Graph& graph, const Node& node) {
  const TensorSpec& in = graph.spec(node.inputs[0]);
  return is_floating(in.dtype) && in == node.specs[0];
}

bool has_scalar(const Node& node, std::string_view op, double scalar) {
  return node.op->name == op && number_attribute(node, "scalar", scalar + 1) == scalar;
}

}  // namespace

Replacement square_of_self(Graph& graph, Node& node) {
  const DType dtype = node.specs[0].dtype;
  if (!(node.inputs[0] == node.inputs[1]) || !(is_floating(dtype) || is_integer(dtype))) return no_change();
  if (!(graph.spec(node.inputs[0]) == node.specs[0])) return no_change();
  return replace_with(emit(graph, kSquare, {node.inputs[0]}, {}, &node));
}

Replacement reciprocal(Graph& graph, Node& node) {
  if (!keeps_float(graph, node) || !has_scalar(node, "_rdiv_scalar", 1)) return no_change();
  return replace_with(emit(graph, kReciprocal, {node.inputs[0]}, {}, &node));
}

// Handles -1 * x and -(-x).
Replacement opposite(Graph& graph, Node& node) {
  if (!keeps_float(graph, node)) return no_change();
  if (has_scalar(node, "_mul_scalar", -1)) return replace_with(emit(graph, kNegative, {node.inputs[0]}, {}, &node));
  if (node.op != &kNegative.op() || !is_first_of(node.inputs[0], kNegative)) return no_change();
  const NodeEntry& start = node.inputs[0].node->inputs[0];
  return separates_borders(graph, node, start) ? no_change() : replace_with(start);
}

Replacement reciprocal_root(Graph& graph, Node& node) {
  if (!is_first_of(node.inputs[0], kSqrt) || graph.only_reader(node.inputs[0]) != &node) return no_change();
  return replace_with(emit(graph, kRsqrt, {node.inputs[0].node->inputs[0]}, {}, &node));
}

Replacement small_power(Graph& graph, Node& node) {
  if (!keeps_float(graph, node)) return no_change();
  const NodeEntry& x = node.inputs[0];
  const double exponent = number_attribute(node, "scalar", 1);
  if (exponent == -1) return replace_with(emit(graph, kReciprocal, {x}, {}, &node));
  if (exponent != 2 && exponent != 3) return no_change();
  const NodeEntry square = emit(graph, kSquare, {x}, {}, &node);
  return replace_with(exponent == 2 ? square : emit(graph, kProduct, {square, x}, {}, &node));
}

// Roots and powers of -0.0 and -inf differ: their powers are 0 and inf, their roots -0.0 and NaN.
Replacement root_power(Graph& graph, Node& node) {
  if (!keeps_float(graph, node)) return no_change();
  const double exponent = number_attribute(node, "scalar", 1);
  if (exponent == 0.5) return replace_with(emit(graph, kSqrt, {node.inputs[0]}, {}, &node));
  if (exponent == -0.5) return replace_with(emit(graph, kRsqrt, {node.inputs[0]}, {}, &node));
  return no_change();
}

}  // namespace hybridnet::passes
