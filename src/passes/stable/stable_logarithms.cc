// Sums of exponentials: log(sum(exp(x))) is infinite for x = 90 in float32. Operators for the whole chain stay
// finite. pipelines.cc has more such rules, as patterns.
#include <limits>

#include "graph/arithmetic.h"
#include "graph/reduced_axes.h"
#include "passes/attributes.h"
#include "passes/gradient/node_builders.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

const OpRef kLog{"log"}, kExp{"exp"}, kSum{"sum"}, kMax{"max"}, kSoftmax{"softmax"}, kBroadcastSub{"broadcast_sub"},
    kBroadcastAdd{"broadcast_add"}, kBlockGrad{"BlockGrad"}, kClip{"clip"}, kSqueeze{"squeeze"};

const NodeEntry& before(const NodeEntry& entry) { return entry.node->inputs[0]; }

// True for max(..), also behind nodes that keep its value.
bool is_maximum(NodeEntry entry) {
  while (is_first_of(entry, kBlockGrad) || is_first_of(entry, kClip)) entry = NodeEntry(before(entry));
  return is_first_of(entry, kMax);
}

// Bounds a value that is subtracted by the largest finite numbers of its dtype: inf - inf would be NaN.
NodeEntry finite(Graph& graph, const NodeEntry& entry, const Node& origin) {
  double most = std::numeric_limits<double>::max();
  switch (graph.spec(entry).dtype) {
    case DType::kFloat32:
      most = std::numeric_limits<float>::max();
      break;
    case DType::kFloat16:
      most = 65504;
      break;
    case DType::kBFloat16:
      most = 3.3895313892515355e38;
      break;
    default:
      break;
  }
  return {
      graph.add(kClip.op(), make_params(kClip.op(), nullptr, {{"a_min", -most}, {"a_max", most}}), {entry}, &origin),
      0};
}

}  // namespace

// log(sum(exp(x))) is m + log(sum(exp(x - m))) with m = max(x), which does not affect the gradient.
Replacement log_sum_exp(Graph& graph, Node& node) {
  const NodeEntry& sum = node.inputs[0];
  if (!is_first_of(sum, kSum) || !is_first_of(before(sum), kExp)) return no_change();
  const NodeEntry& x = before(before(sum));
  if (is_of_arrays(x, "sub") && is_maximum(x.node->inputs[1])) return no_change();  // done already
  if (graph.spec(x).shape.size() == 0) return no_change();                          // an empty array has no maximum
  const bool keeps_axes = bool_attribute(*sum.node, "keepdims", false);
  const NodeEntry largest{
      graph.add(kMax.op(), make_params(kMax.op(), sum.node.get(), {{"keepdims", true}}), {x}, &node), 0};
  const NodeEntry shift = emit(graph, kBlockGrad, {finite(graph, largest, node)}, {}, &node);
  const NodeEntry less = emit(graph, kBroadcastSub, {x, shift}, {}, &node);
  const NodeEntry total{graph.add(kSum.op(), sum.node->params, {emit(graph, kExp, {less}, {}, &node)}, sum.node.get()),
                        0};
  NodeEntry shift_of_sum = shift;
  if (!keeps_axes) {
    const uint32_t axes = reduced_axes(graph, *sum.node);
    AttrValue::List list;
    for (int i = 0; i < 32; ++i)
      if (axes >> i & 1) list.emplace_back(static_cast<int64_t>(i));
    shift_of_sum = {graph.add(kSqueeze.op(), make_params(kSqueeze.op(), nullptr, {{"axis", list}}), {shift}, &node), 0};
    if (!(graph.spec(shift_of_sum) == node.specs[0])) return no_change();
  }
  return replace_with(emit(graph, kBroadcastAdd, {emit(graph, kLog, {total}, {}, &node), shift_of_sum}, {}, &node));
}

// exp(x) / sum(exp(x)); x may be a difference x - max(x).
Replacement softmax_of_quotient(Graph& graph, Node& node) {
  if (node.inputs.size() != 2) return no_change();  // the divisor is a number
  const NodeEntry &exponential = node.inputs[0], &sum = node.inputs[1];
  if (!is_first_of(exponential, kExp) || !is_first_of(sum, kSum) || !(before(sum) == exponential)) return no_change();
  const std::optional<int> axis = reduced_axis(graph, *sum.node);
  if (!axis || !bool_attribute(*sum.node, "keepdims", false)) return no_change();
  NodeEntry x = before(exponential);
  if (!(graph.spec(x) == node.specs[0])) return no_change();
  if (is_of_arrays(x, "sub") && is_maximum(x.node->inputs[1])) {
    const Shape& sizes = graph.spec(x.node->inputs[1]).shape;
    if (sizes.ndim() == node.specs[0].shape.ndim() && sizes[*axis] == 1 && graph.spec(before(x)) == node.specs[0])
      x = NodeEntry(before(x));
  }
  return replace_with(emit(graph, kSoftmax, {x}, {{"axis", std::to_string(*axis)}}, &node));
}

}  // namespace hybridnet::passes
