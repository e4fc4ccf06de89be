// The loss of a classifier: one logarithm of each row of log_softmax is read, and the others need not be stored.
#include "passes/attributes.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

const OpRef kLogSoftmax{"log_softmax"}, kLogSoftmaxPick{"_log_softmax_pick"};

bool is_along_last_axis(const Graph& graph, const Node& node) {
  const AttrValue axis = attribute(node, "axis");
  const auto* number = std::get_if<int64_t>(&axis.value);
  return number && (*number == -1 || *number == graph.spec(node.inputs[0]).shape.ndim() - 1);
}

}  // namespace

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
