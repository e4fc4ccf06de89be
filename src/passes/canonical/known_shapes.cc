// Values that are read for their shape only are not computed, and with fixed sizes their shape is a constant.
#include <algorithm>

#include "hybridnet/ndarray.h"
#include "passes/control/size_questions.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

const OpRef kSizeArray{"size_array"};

}  // namespace

Replacement shape_of_source(Graph& graph, Node& node) {
  NodeEntry giver = node.inputs[0];
  while (!giver.node->is_variable() && giver.node->op->pointwise) {
    const std::vector<NodeEntry>& inputs = giver.node->inputs;
    const auto same = std::find_if(inputs.begin(), inputs.end(), [&](const NodeEntry& input) {
      return graph.spec(input).shape == graph.spec(giver).shape;
    });
    if (same == inputs.end()) break;
    giver = *same;
  }
  if (giver == node.inputs[0]) return no_change();
  return replace_with({graph.add(*node.op, node.params, {giver}, &node), 0});
}

// In a body, or in a graph that is compiled for one size, the shape is a constant.
Replacement constant_shape(Graph& graph, Node& node) {
  const Shape& shape = graph.spec(node.inputs[0]).shape;
  if (!sizes_are_fixed() || !shape.known()) return no_change();
  note_shape_read(shape);
  const NDArray value = NDArray::empty(node.specs[0]);
  auto* const numbers = static_cast<int64_t*>(value.data());
  if (node.op == &kSizeArray.op())
    numbers[0] = shape.size();
  else
    std::copy(shape.begin(), shape.end(), numbers);
  return replace_with({graph.add_constant(Ref<Object>(value.impl()), node.specs[0]), 0});
}

// There, parameters that follow from sizes are constants, too.
Replacement constant_sizes(Graph& graph, Node& node) {
  if (!sizes_are_fixed()) return no_change();
  std::vector<TensorSpec> specs;
  for (const NodeEntry& input : node.inputs) specs.push_back(graph.spec(input));
  const std::optional<Op::Resolved> use = node.op->resolve_sizes(node.params->data(), specs);
  if (!use) return no_change();
  for (const TensorSpec& spec : specs) note_shape_read(spec.shape);
  std::vector<NodeEntry> inputs(node.inputs.begin(),
                                node.inputs.begin() + static_cast<std::ptrdiff_t>(use->num_inputs));
  const NodePtr made = graph.add(*use->op, use->params, std::move(inputs), &node);
  std::vector<NodeEntry> outputs;
  for (uint32_t i = 0; i < made->specs.size(); ++i) outputs.push_back({made, i});
  return {std::move(outputs), {}, {}};
}

}  // namespace hybridnet::passes
