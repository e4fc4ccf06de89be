// Chains of casts: the first cast is removed if it keeps every value.
#include "passes/attributes.h"
#include "passes/borders.h"
#include "passes/gradient/node_builders.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

const OpRef kCast{"Cast"};

struct Digits {
  int integer = 0;       // bits of the largest range of exact integers, without the sign
  int exponent = 0;      // bits of the exponent; 0: integers only
  bool negative = true;  // has negative numbers
};

Digits digits_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return {53, 11};
    case DType::kFloat32:
      return {24, 8};
    case DType::kFloat16:
      return {11, 5};
    case DType::kBFloat16:
      return {8, 8};
    case DType::kInt64:
      return {63};
    case DType::kInt32:
      return {31};
    case DType::kInt8:
      return {7};
    case DType::kUInt8:
      return {8, 0, false};
    default:
      return {1, 0, false};  // truth values
  }
}

// True if `wide` has every value of `narrow`.
bool holds(DType wide, DType narrow) {
  const Digits w = digits_of(wide), n = digits_of(narrow);
  if (wide == DType::kBool && narrow != DType::kBool) return false;
  return w.integer >= n.integer && w.exponent >= n.exponent && (w.negative || !n.negative);
}

}  // namespace

Replacement join_casts(Graph& graph, Node& node) {
  const Node& first = *node.inputs[0].node;
  if (!is_first_of(node.inputs[0], kCast)) return no_change();
  const NodeEntry& start = first.inputs[0];
  const DType from = graph.spec(start).dtype, by = first.specs[0].dtype, to = node.specs[0].dtype;
  if (!holds(by, from)) return no_change();
  if (graph.spec(start) == node.specs[0])
    return separates_borders(graph, node, start) ? no_change() : replace_with(start);
  return replace_with({graph.add(*node.op, node.params, {start}, &node), 0});
}

}  // namespace hybridnet::passes
