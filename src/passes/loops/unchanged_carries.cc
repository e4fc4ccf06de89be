// A carry that no iteration changes becomes a value that all iterations read: its last value is its first, other rules
// can move work on it out of the loop, and its gradient is a sum instead of a chain.
#include <algorithm>

#include "graph/control/loop_view.h"
#include "passes/gradient/node_builders.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

const OpRef kCopy{"_copy"};

// Returns the source of a copy: outputs of a body that are its inputs are copies of them.
const Node* source_of(const NodeEntry& entry) {
  return entry.node->op == &kCopy.op() ? entry.node->inputs[0].node.get() : entry.node.get();
}

bool has_unchanged_carry(const Node& node) {
  const LoopSpec& loop = loop_of(node);
  const Subgraph& body = *node.subgraphs.back();
  for (size_t i = 0; i < loop.carries(); ++i)
    if (source_of(body.outputs[loop.final_carry(i)]) == body.inputs[loop.carry(i)].get()) return true;
  return false;
}

}  // namespace

bool unchanged_carries(Graph& graph) {
  bool changed = false;
  for_each_node(graph, {ControlKind::kForeach, ControlKind::kWhileLoop}, [&](Node& node) {
    const LoopSpec& loop = loop_of(node);
    // If gradients of carries are cut off, those of invariants would not be.
    if (!LoopView::can_view(node) || loop.detach_every > 0 || loop.truncate_gradient > 0 || !has_unchanged_carry(node))
      return;
    LoopView view(graph, node);
    std::vector<NodeEntry> now(node.specs.size());  // takes the place of outputs that go
    std::erase_if(view.carries, [&](const LoopView::Carry& carry) {
      if (source_of(view.entry(carry.next)) != carry.slot.inner.get()) return false;
      view.captured.push_back(carry.slot);
      const auto output = static_cast<size_t>(carry.output);
      if (graph.is_used(node, carry.output)) now[output] = emit(graph, kCopy, {carry.slot.outer}, {}, &node);
      return true;
    });
    if (view.outs.empty() && view.carries.empty() && !view.has_condition())
      move_readers(graph, node, now);  // nothing is left to do
    else
      view.replace(graph, node, view.put_together(graph, node), now);
    changed = true;
  });
  return changed;
}

}  // namespace hybridnet::passes
