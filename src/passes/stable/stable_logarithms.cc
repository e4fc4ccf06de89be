// Logarithms of exponentials: log(sum(exp(x))) is infinite for x = 90 in float32, log(1 + x) is 0 for x = 1e-9.
// Operators for the whole chain lose nothing.
#include <bit>
#include <limits>

#include "passes/attributes.h"
#include "passes/gradient/node_builders.h"
#include "passes/layers/reduced_axes.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

const OpRef kLog{"log"}, kExp{"exp"}, kSum{"sum"}, kMax{"max"}, kSoftmax{"softmax"}, kLogSoftmax{"log_softmax"},
    kSigmoid{"sigmoid"}, kActivation{"Activation"}, kNegative{"negative"}, kLog1p{"log1p"}, kExpm1{"expm1"},
    kPlus{"_plus_scalar"}, kMinus{"_minus_scalar"}, kRminus{"_rminus_scalar"}, kPick{"pick"}, kSubtract{"elemwise_sub"},
    kBroadcastSub{"broadcast_sub"}, kElementwiseDiv{"elemwise_div"}, kBroadcastDiv{"broadcast_div"},
    kBroadcastAdd{"broadcast_add"}, kBlockGrad{"BlockGrad"}, kClip{"clip"}, kSqueeze{"squeeze"};

bool is_sum_with(const NodeEntry& entry, const OpRef& op, double number) {
  return is_first_of(entry, op) && number_attribute(*entry.node, "scalar", number + 1) == number;
}
bool is_one_plus(const NodeEntry& entry) { return is_sum_with(entry, kPlus, 1) || is_sum_with(entry, kMinus, -1); }
bool is_minus_one(const NodeEntry& entry) { return is_sum_with(entry, kMinus, 1) || is_sum_with(entry, kPlus, -1); }

const NodeEntry& before(const NodeEntry& entry) { return entry.node->inputs[0]; }

bool is_float(const Graph& graph, const NodeEntry& entry) { return is_floating(graph.spec(entry).dtype); }

NodeEntry softplus(Graph& graph, const NodeEntry& x, const Node& origin) {
  return emit(graph, kActivation, {x}, {{"act_type", "softrelu"}}, &origin);
}

// True for softmax without a length input, which log_softmax does not take.
bool is_plain_softmax(const NodeEntry& entry) { return is_first_of(entry, kSoftmax) && entry.node->inputs.size() == 1; }

NodeEntry log_softmax_of(Graph& graph, const Node& softmax, const Node& origin) {
  return {graph.add(kLogSoftmax.op(), make_params(kLogSoftmax.op(), &softmax, {}), softmax.inputs, &origin), 0};
}

NodeEntry over_axis(Graph& graph, const OpRef& op, const NodeEntry& x, int axis, const Node& origin) {
  return emit(graph, op, {x}, {{"axis", std::to_string(axis)}}, &origin);
}

// True for max(..), also behind nodes that keep its value.
bool is_maximum(NodeEntry entry) {
  while (is_first_of(entry, kBlockGrad) || is_first_of(entry, kClip)) entry = NodeEntry(before(entry));
  return is_first_of(entry, kMax);
}

bool is_difference(const NodeEntry& entry) {
  return is_first_of(entry, kSubtract) || is_first_of(entry, kBroadcastSub);
}

// x of sum(exp(x)) with one reduced axis that stays; nothing for other entries.
struct SumOfExponentials {
  NodeEntry x, exponential;
  int axis;
};
std::optional<SumOfExponentials> sum_of_exponentials(const Graph& graph, const NodeEntry& entry) {
  if (!is_first_of(entry, kSum) || !is_first_of(before(entry), kExp) || !is_float(graph, entry)) return std::nullopt;
  const std::optional<int> axis = reduced_axis(graph, *entry.node);
  if (!axis || !bool_attribute(*entry.node, "keepdims", false)) return std::nullopt;
  return SumOfExponentials{before(before(entry)), before(entry), *axis};
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

// log(softmax(x)), and log(pick(softmax(x), y)).
Replacement log_of_softmax(Graph& graph, Node& node) {
  const NodeEntry& of = node.inputs[0];
  const bool picked = is_first_of(of, kPick);
  const NodeEntry& softmax = picked ? before(of) : of;
  if (!is_plain_softmax(softmax)) return no_change();
  const NodeEntry logarithm = log_softmax_of(graph, *softmax.node, node);
  if (!picked) return replace_with(logarithm);
  return replace_with({graph.add(kPick.op(), of.node->params, {logarithm, of.node->inputs[1]}, &node), 0});
}

// log(sum(exp(x))) is m + log(sum(exp(x - m))) with m = max(x), which does not affect the gradient.
Replacement log_sum_exp(Graph& graph, Node& node) {
  const NodeEntry& sum = node.inputs[0];
  if (!is_first_of(sum, kSum) || !is_first_of(before(sum), kExp) || !is_float(graph, sum)) return no_change();
  const NodeEntry& x = before(before(sum));
  if (is_difference(x) && is_maximum(x.node->inputs[1])) return no_change();  // done already
  if (graph.spec(x).shape.size() == 0) return no_change();                    // an empty array has no maximum
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

// x - log(sum(exp(x))).
Replacement log_softmax_of_difference(Graph& graph, Node& node) {
  const NodeEntry& logarithm = node.inputs[1];
  if (!is_first_of(logarithm, kLog)) return no_change();
  const auto sum = sum_of_exponentials(graph, before(logarithm));
  if (!sum || !(sum->x == node.inputs[0]) || !(graph.spec(sum->x) == node.specs[0])) return no_change();
  return replace_with(over_axis(graph, kLogSoftmax, sum->x, sum->axis, node));
}

// exp(x) / sum(exp(x)); x may be a difference x - max(x).
Replacement softmax_of_quotient(Graph& graph, Node& node) {
  const auto sum = sum_of_exponentials(graph, node.inputs[1]);
  if (!sum || !(sum->exponential == node.inputs[0]) || !(graph.spec(sum->x) == node.specs[0])) return no_change();
  NodeEntry x = sum->x;
  if (is_difference(x) && is_maximum(x.node->inputs[1])) {
    const NodeEntry& shift = x.node->inputs[1];
    const Shape& sizes = graph.spec(shift).shape;
    if (sizes.ndim() == graph.spec(x).shape.ndim() && sizes[sum->axis] == 1 &&
        graph.spec(x.node->inputs[0]) == node.specs[0])
      x = NodeEntry(before(x));
  }
  return replace_with(over_axis(graph, kSoftmax, x, sum->axis, node));
}

Replacement log_of_sum(Graph& graph, Node& node) {
  const NodeEntry& sum = node.inputs[0];
  if (!is_one_plus(sum) || !(graph.spec(before(sum)) == node.specs[0]) || !is_float(graph, sum)) return no_change();
  return replace_with(emit(graph, kLog1p, {before(sum)}, {}, &node));
}

Replacement exponential_less_one(Graph& graph, Node& node) {
  const NodeEntry self{NodePtr(&node), 0};
  if (!is_minus_one(self) || !is_first_of(before(self), kExp)) return no_change();
  const NodeEntry& x = before(before(self));
  if (!(graph.spec(x) == node.specs[0]) || !is_float(graph, x)) return no_change();
  return replace_with(emit(graph, kExpm1, {x}, {}, &node));
}

// log(sigmoid(x)) and log(1 - sigmoid(x)).
Replacement log_of_sigmoid(Graph& graph, Node& node) {
  const NodeEntry& of = node.inputs[0];
  const bool opposite = is_sum_with(of, kRminus, 1);
  const NodeEntry& sigmoid = opposite ? before(of) : of;
  if (!is_first_of(sigmoid, kSigmoid) || !(graph.spec(before(sigmoid)) == node.specs[0])) return no_change();
  const NodeEntry& x = before(sigmoid);
  const NodeEntry of_softplus = opposite ? x : emit(graph, kNegative, {x}, {}, &node);
  return replace_with(emit(graph, kNegative, {softplus(graph, of_softplus, node)}, {}, &node));
}

// log(1 + exp(x)), also in the form log1p(exp(x)) that log_of_sum makes.
Replacement softplus_of_exponential(Graph& graph, Node& node) {
  NodeEntry exponential = node.inputs[0];
  if (node.op == &kLog.op()) {
    if (!is_one_plus(exponential)) return no_change();
    exponential = NodeEntry(before(exponential));
  }
  if (!is_first_of(exponential, kExp) || !(graph.spec(before(exponential)) == node.specs[0])) return no_change();
  return is_float(graph, exponential) ? replace_with(softplus(graph, before(exponential), node)) : no_change();
}

}  // namespace hybridnet::passes
