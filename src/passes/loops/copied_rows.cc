// Replaces outputs of a loop that are rows of its data by the data: a foreach that only applies layers to rows
// disappears once the layers have moved in front of it, and a value that a loop passes on is not written row by row.
#include <algorithm>

#include "graph/control/loop_view.h"
#include "passes/gradient/node_builders.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

const OpRef kCopy{"_copy"};

// Returns the source of a copy: outputs of a body that are its inputs are copies of them.
NodeEntry source_of(const NodeEntry& entry) { return entry.node->op == &kCopy.op() ? entry.node->inputs[0] : entry; }

bool has_copied_rows(const Node& node) {
  const LoopSpec& loop = loop_of(node);
  const Subgraph& body = *node.subgraphs[0];
  const auto data = std::span(body.inputs).first(loop.seqs());
  return std::any_of(
      body.outputs.begin(), body.outputs.begin() + static_cast<long>(loop.outs()),
      [&](const NodeEntry& out) { return std::find(data.begin(), data.end(), source_of(out).node) != data.end(); });
}

}  // namespace

bool copied_rows(Graph& graph) {
  bool changed = false;
  for_each_node(graph, {ControlKind::kForeach}, [&](Node& node) {
    const LoopSpec& loop = loop_of(node);
    // Rows behind the last iteration of a counted loop are zero; a truncated loop has no gradient for earlier rows.
    if (loop.counted || loop.truncate_gradient > 0 || !LoopView::can_view(node) || !has_copied_rows(node)) return;
    LoopView view(graph, node);
    std::vector<NodeEntry> now(node.specs.size());  // takes the place of outputs that go
    std::erase_if(view.outs, [&](const LoopView::Out& out) {
      const LoopView::Slot* rows = LoopView::find(view.data, source_of(view.entry(out.value)));
      if (rows == nullptr) return false;
      const auto output = static_cast<size_t>(out.output);
      if (graph.is_used(node, out.output))
        now[output] = emit(graph, kCopy, {reshaped(graph, rows->outer, node.specs[output].shape, &node)}, {}, &node);
      return true;
    });
    if (view.outs.empty() && view.carries.empty())
      move_readers(graph, node, now);  // nothing is left to do
    else
      view.replace(graph, node, view.put_together(graph, node), now);
    changed = true;
  });
  return changed;
}

}  // namespace hybridnet::passes
