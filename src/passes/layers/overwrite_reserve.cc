// If forward and backward are one plan, as in a training step, an RNN's reserve (the values that it keeps of its steps)
// has no reader behind the gradient: the gradients of the gates, as large as the gates, may take its memory.
#include <algorithm>

#include "passes/attributes.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

const OpRef kRnn{"RNN"};

// True if the entry is the reserve of an RNN of this graph and only this node reads it.
bool may_take(const Graph& graph, const Node& reader, const NodeEntry& entry) {
  const Node& made_by = *entry.node;
  return made_by.op == &kRnn.op() && entry.index + 1 == made_by.specs.size() && graph.only_reader(entry) == &reader;
}

}  // namespace

Replacement overwrite_reserve(Graph& graph, Node& node) {
  if (bool_attribute(node, "over_reserve", true)) return no_change();
  const auto takes = [&](const NodeEntry& input) { return may_take(graph, node, input); };
  if (std::none_of(node.inputs.begin(), node.inputs.end(), takes)) return no_change();
  const NodePtr over =
      graph.add(*node.op, make_params(*node.op, &node, {{"over_reserve", AttrValue(true)}}), node.inputs, &node);
  Replacement replacement;
  for (uint32_t i = 0; i < node.specs.size(); ++i)
    replacement.outputs.push_back(graph.is_used(node, static_cast<int>(i)) ? NodeEntry{over, i} : NodeEntry{});
  return replacement;
}

}  // namespace hybridnet::passes
