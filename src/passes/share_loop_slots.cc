// What enters or leaves a loop twice enters or leaves it once: slices of the same data, captured values, states that
// start and go on alike, outputs of the same value. Fewer slots also mean fewer gradients.
#include <algorithm>

#include "passes/loop_view.h"
#include "passes/register_all.h"

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

// Cheap: most loops have nothing to share.
bool may_share(const Node& node) {
  const auto& p = params_of<ForeachParams>(node);
  const auto first_state = static_cast<long>(p.in_data_locs.size());
  const auto first_captured = first_state + static_cast<long>(p.in_state_locs.size());
  const auto begin = node.inputs.begin();
  const auto& outputs = node.subgraphs[0]->outputs;
  return has_twins({begin, begin + first_state}) || has_twins({begin + first_state, begin + first_captured}) ||
         has_twins({begin + first_captured, begin + first_captured + static_cast<long>(p.remain_locs.size())}) ||
         has_twins({outputs.begin(), outputs.begin() + p.num_out_data});
}

bool share_slots(LoopView& view, Slots& slots) {
  Slots kept;
  for (const LoopView::Slot& slot : slots) {
    const auto twin =
        std::find_if(kept.begin(), kept.end(), [&](const LoopView::Slot& k) { return k.outer == slot.outer; });
    if (twin == kept.end()) {
      kept.push_back(slot);
    } else if (!view.body.clients({slot.inner, 0}).empty()) {
      view.body.replace({slot.inner, 0}, {twin->inner, 0});
    }
  }
  const bool changed = kept.size() < slots.size();
  slots = std::move(kept);
  return changed;
}

void merge_equal(Graph& graph) { rewrite_database().find("merge")->pass(graph); }

// Class of each state: states of one class have equal values in every iteration. By coinduction: states that start
// alike are taken for equal; classes whose next values are then not the same node are split until none is left.
std::vector<size_t> classes_of_states(const LoopView& view) {
  std::vector<size_t> leader(view.states.size());
  for (size_t s = 0; s < leader.size(); ++s) {
    leader[s] = s;
    for (size_t t = 0; t < s && leader[s] == s; ++t)
      if (view.states[t].slot.outer == view.states[s].slot.outer && leader[t] == t &&
          view.body.spec({view.states[t].slot.inner, 0}) == view.body.spec({view.states[s].slot.inner, 0}))
        leader[s] = t;
  }
  for (bool split = true; split;) {
    split = false;
    Graph trial(view.body.train());
    EntryMap map;
    for (const NodePtr& input : view.body.inputs())
      map[{input, 0}] = {trial.add_input(input->name, input->specs[0]), 0};
    for (size_t s = 0; s < leader.size(); ++s)
      map[{view.states[s].slot.inner, 0}] = NodeEntry(map.at({view.states[leader[s]].slot.inner, 0}));
    for (const NodeEntry& output : trial.import(view.body, view.body.outputs(), map)) trial.add_output(output);
    merge_equal(trial);
    for (size_t s = 0; s < leader.size(); ++s) {
      if (leader[s] == s) continue;
      const auto next = [&](size_t state) { return trial.outputs()[static_cast<size_t>(view.states[state].next)]; };
      if (next(s) == next(leader[s])) continue;
      leader[s] = s;  // stands alone from now on: fewer sharings than possible, never a wrong one
      split = true;
    }
  }
  return leader;
}

bool share_states(LoopView& view, std::vector<std::pair<int, int>>& same_final) {
  const std::vector<size_t> leader = classes_of_states(view);
  std::vector<LoopView::State> kept;
  for (size_t s = 0; s < leader.size(); ++s) {
    LoopView::State& state = view.states[s];
    if (leader[s] == s) {
      kept.push_back(state);
      continue;
    }
    const LoopView::State& twin = view.states[leader[s]];
    if (!view.body.clients({state.slot.inner, 0}).empty())
      view.body.replace({state.slot.inner, 0}, {twin.slot.inner, 0});
    same_final.push_back({state.output, twin.output});
  }
  const bool changed = kept.size() < view.states.size();
  view.states = std::move(kept);
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
  std::vector<std::pair<int, int>> same;  // outputs of the node: one that goes, the one that stays
  bool changed = share_slots(view, view.data);
  changed = share_slots(view, view.captured) || changed;
  changed = share_states(view, same) || changed;
  merge_equal(view.body);  // what now reads the same slots
  changed = share_outs(view, same) || changed;
  if (!changed) return false;
  const NodePtr made = view.put_together(graph, node);
  // First the outputs that go, so that the node keeps its readers of the ones that stay.
  for (const auto& [gone, stays] : same)
    if (graph.is_used(node, gone))
      graph.replace({NodePtr(&node), static_cast<uint32_t>(gone)}, {NodePtr(&node), static_cast<uint32_t>(stays)});
  view.replace(graph, node, made, {});
  return true;
}

bool share_all(Graph& graph) {
  bool changed = false;
  for (Node* node : graph.order())
    if (graph.contains(node) && control_kind(*node) == ControlKind::kForeach) changed = share(graph, *node) || changed;
  return changed;
}

}  // namespace

void register_share_loop_slots(RewriteDatabase& db) {
  db.pass("share_loop_slots", share_all).at(2.8).tags({"fast_run", "loop"});
  db.pass("share_loop_slots_joint", share_all).at(22).tags({"fast_run", "loop"});
}

}  // namespace hybridnet::passes
