// A value that enters or leaves a loop twice enters or leaves it once: slices of the same data, captured values, states
// with equal first and next values, outputs of the same value. Fewer slots also mean fewer gradients.
#include <algorithm>

#include "passes/loops/equal_states.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

using Slots = std::vector<LoopView::Slot>;

bool has_twins(const std::vector<NodeEntry>& entries) {
  for (size_t i = 0; i < entries.size(); ++i)
    if (std::find(entries.begin(), entries.begin() + static_cast<long>(i), entries[i]) !=
        entries.begin() + static_cast<long>(i))
      return true;
  return false;
}

// A cheap check: most loops have nothing to share.
bool may_share(const Node& node) {
  if (!LoopView::can_view(node)) return false;
  const LoopSpec& loop = loop_of(node);
  const auto inputs = [&](size_t first, size_t end) {
    return std::vector<NodeEntry>(node.inputs.begin() + static_cast<long>(first),
                                  node.inputs.begin() + static_cast<long>(end));
  };
  const auto& outputs = node.subgraphs.back()->outputs;
  return has_twins(inputs(0, loop.seqs())) || has_twins(inputs(loop.seqs(), loop.first_invariant())) ||
         has_twins(inputs(loop.first_invariant(), loop.slots())) ||
         has_twins({outputs.begin(), outputs.begin() + loop.num_out});
}

// Readers of one input of a graph read its twin's input instead; a twin without an input takes over this one.
void join_inputs(Graph& graph, const NodePtr& input, NodePtr& of_twin) {
  if (!input) return;
  if (!of_twin) {
    of_twin = input;
  } else if (!graph.clients({input, 0}).empty()) {
    graph.replace({input, 0}, {of_twin, 0});
  }
}

void join_slots(LoopView& view, const LoopView::Slot& slot, LoopView::Slot& twin) {
  join_inputs(view.body, slot.inner, twin.inner);
  if (view.condition) join_inputs(*view.condition, slot.tested, twin.tested);
}

bool share_slots(LoopView& view, Slots& slots) {
  Slots kept;
  for (const LoopView::Slot& slot : slots) {
    const auto twin =
        std::find_if(kept.begin(), kept.end(), [&](const LoopView::Slot& k) { return k.outer == slot.outer; });
    if (twin == kept.end())
      kept.push_back(slot);
    else
      join_slots(view, slot, *twin);
  }
  const bool changed = kept.size() < slots.size();
  slots = std::move(kept);
  return changed;
}

bool share_states(LoopView& view, std::vector<std::pair<int, int>>& same_final) {
  const std::vector<size_t> first = first_equal_states(view);
  std::vector<LoopView::Carry> kept;
  for (size_t s = 0; s < first.size(); ++s) {
    if (first[s] == s) continue;
    LoopView::Carry& twin = view.carries[first[s]];
    join_slots(view, view.carries[s].slot, twin.slot);
    same_final.push_back({view.carries[s].output, twin.output});
  }
  for (size_t s = 0; s < first.size(); ++s)
    if (first[s] == s) kept.push_back(view.carries[s]);
  const bool changed = kept.size() < view.carries.size();
  view.carries = std::move(kept);
  return changed;
}

bool share_outs(LoopView& view, std::vector<std::pair<int, int>>& same_out) {
  std::vector<LoopView::Out> kept;
  for (const LoopView::Out& out : view.outs) {
    const auto twin = std::find_if(
        kept.begin(), kept.end(), [&](const LoopView::Out& k) { return view.entry(k.value) == view.entry(out.value); });
    if (twin == kept.end())
      kept.push_back(out);
    else
      same_out.push_back({out.output, twin->output});
  }
  const bool changed = kept.size() < view.outs.size();
  view.outs = std::move(kept);
  return changed;
}

bool share(Graph& graph, Node& node) {
  if (!may_share(node)) return false;
  LoopView view(graph, node);
  std::vector<std::pair<int, int>> same;  // outputs of the node: removed one, its twin
  bool changed = share_slots(view, view.data);
  changed = share_slots(view, view.captured) || changed;
  changed = share_states(view, same) || changed;
  merge(view.body);  // nodes that now read the same slots
  changed = share_outs(view, same) || changed;
  if (!changed) return false;
  const NodePtr made = view.put_together(graph, node);
  // Removes outputs first, so that the node keeps its readers of the ones that stay.
  for (const auto& [gone, stays] : same)
    if (graph.is_used(node, gone))
      graph.replace({NodePtr(&node), static_cast<uint32_t>(gone)}, {NodePtr(&node), static_cast<uint32_t>(stays)});
  view.replace(graph, node, made);
  return true;
}

}  // namespace

bool share_loop_slots(Graph& graph) {
  bool changed = false;
  for_each_node(graph, {ControlKind::kForeach, ControlKind::kWhileLoop},
                [&](Node& node) { changed = share(graph, node) || changed; });
  return changed;
}

}  // namespace hybridnet::passes
