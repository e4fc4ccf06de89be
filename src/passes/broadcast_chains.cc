// Arithmetic repeats its operands itself: what was repeated for it is read as it was.
#include <algorithm>
#include <array>

#include "graph/arithmetic.h"
#include "passes/attributes.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

const OpRef kBroadcastTo{"broadcast_to"}, kBroadcastAxis{"broadcast_axis"}, kBroadcastLike{"broadcast_like"};

// What an entry repeats along axes of size 1; itself if it is no such thing.
NodeEntry before_repeating(const Graph& graph, const NodeEntry& entry) {
  const Node& node = *entry.node;
  const std::array<const OpRef*, 3> repeating{&kBroadcastTo, &kBroadcastAxis, &kBroadcastLike};
  if (node.is_variable() ||
      std::none_of(repeating.begin(), repeating.end(), [&](const OpRef* op) { return node.op == &op->op(); }))
    return entry;
  const NodeEntry& start = node.inputs[0];
  return graph.spec(start).shape.ndim() == node.specs[0].shape.ndim() ? start : entry;
}

Shape repeated(const Shape& a, const Shape& b) {
  Shape shape = a;
  for (int i = 0; i < shape.ndim(); ++i)
    if (a[i] == 1) shape[i] = b[i];
  return shape;
}

}  // namespace

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
