// Replaces pick(log_softmax(x)), also written with one_hot, by one operator: the loss of a classifier reads one
// logarithm of each row, so the others need not be stored.
#include "graph/arithmetic.h"
#include "graph/reduced_axes.h"
#include "passes/attributes.h"
#include "passes/gradient/node_builders.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

const OpRef kLogSoftmax{"log_softmax"}, kLogSoftmaxPick{"_log_softmax_pick"}, kOneHot{"one_hot"}, kPick{"pick"},
    kProduct{"elemwise_mul"}, kCast{"Cast"}, kGreater{"_greater_scalar"}, kLesser{"_lesser_scalar"},
    kExpandDims{"expand_dims"};

bool is_along_last_axis(const Graph& graph, const Node& node) {
  const AttrValue axis = attribute(node, "axis");
  const auto* number = std::get_if<int64_t>(&axis.value);
  return number && (*number == -1 || *number == graph.spec(node.inputs[0]).shape.ndim() - 1);
}

// True for rows of zeros with a one at the label. Nothing can be picked from rows without elements.
bool is_plain_one_hot(const NodeEntry& entry) {
  return is_first_of(entry, kOneHot) && number_attribute(*entry.node, "on_value", 1) == 1 &&
         number_attribute(*entry.node, "off_value", 0) == 0 && number_attribute(*entry.node, "depth", 0) > 0;
}

// Returns 1 for labels that one_hot marks, 0 for labels out of range; one_hot rounds labels toward zero.
NodeEntry is_in_range(Graph& graph, const Node& one_hot, DType dtype, const Node& origin) {
  const NodeEntry label = emit(graph, kCast, {one_hot.inputs[0]}, {{"dtype", "float64"}}, &origin);
  const std::string depth = std::to_string(integer_attribute(one_hot, "depth", 0));
  const NodeEntry above = emit(graph, kGreater, {label}, {{"scalar", "-1"}}, &origin);
  const NodeEntry below = emit(graph, kLesser, {label}, {{"scalar", depth}}, &origin);
  return emit(graph, kCast, {emit(graph, kProduct, {above, below}, {}, &origin)}, {{"dtype", dtype_name(dtype)}},
              &origin);
}

}  // namespace

Replacement one_hot_pick(Graph& graph, Node& node) {
  const NodeEntry product = node.inputs[0];
  if (!is_of_arrays(product, "mul")) return no_change();
  NodeEntry marks = product.node->inputs[0], logarithms = product.node->inputs[1];
  if (!is_plain_one_hot(marks)) std::swap(marks, logarithms);
  if (!is_plain_one_hot(marks) || !is_first_of(logarithms, kLogSoftmax)) return no_change();
  const TensorSpec& spec = graph.spec(logarithms);
  const int last = spec.shape.ndim() - 1;
  if (last < 1 || reduced_axis(graph, node) != last || !(graph.spec(marks) == spec)) return no_change();
  if (!is_along_last_axis(graph, *logarithms.node) || graph.only_reader(product) != &node) return no_change();
  const bool keepdims = bool_attribute(node, "keepdims", false);
  NodeEntry in_range = is_in_range(graph, *marks.node, spec.dtype, node);
  if (keepdims) in_range = emit(graph, kExpandDims, {in_range}, {{"axis", "-1"}}, &node);
  const NodeEntry picked = emit(graph, kPick, {logarithms, marks.node->inputs[0]},
                                {{"axis", "-1"}, {"keepdims", keepdims ? "True" : "False"}}, &node);
  return replace_with(emit(graph, kProduct, {picked, in_range}, {}, &node));
}

Replacement softmax_pick(Graph& graph, Node& node) {
  const NodeEntry& logarithms = node.inputs[0];
  if (!is_first_of(logarithms, kLogSoftmax) || graph.only_reader(logarithms) != &node) return no_change();
  const Node& softmax = *logarithms.node;
  if (!is_along_last_axis(graph, node) || !is_along_last_axis(graph, softmax)) return no_change();
  if (number_attribute(softmax, "temperature", 1) != 1) return no_change();
  const NodeEntry& data = softmax.inputs[0];
  if (!(graph.spec(data) == softmax.specs[0]) || data == node.inputs[1]) return no_change();
  return replace_with(
      {graph.add(kLogSoftmaxPick.op(), make_params(kLogSoftmaxPick.op(), &node, {}), {data, node.inputs[1]}, &node),
       0});
}

}  // namespace hybridnet::passes
