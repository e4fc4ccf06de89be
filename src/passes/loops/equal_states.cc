#include "passes/loops/equal_states.h"

#include <unordered_map>

#include "passes/rules.h"

namespace hybridnet {
namespace {

bool start_alike(const LoopView& view, const LoopView::Carry& a, const LoopView::Carry& b) {
  return a.slot.outer == b.slot.outer && view.body.spec({a.slot.inner, 0}) == view.body.spec({b.slot.inner, 0});
}

// Joins slots of one kind that have the same outer value.
void share_sources(const std::vector<LoopView::Slot>& slots, EntryMap& map) {
  std::unordered_map<NodeEntry, NodeEntry, NodeEntryHash> known;
  for (const LoopView::Slot& slot : slots) {
    if (!slot.inner) continue;
    const auto [at, is_new] = known.try_emplace(slot.outer, map.at({slot.inner, 0}));
    if (!is_new) map[{slot.inner, 0}] = at->second;
  }
}

// The next value of each state, assuming that the states of one class have the same value.
std::vector<NodeEntry> next_values(const LoopView& view, const std::vector<size_t>& first, Graph& trial) {
  EntryMap map;
  for (const NodePtr& input : view.body.inputs()) map[{input, 0}] = {trial.add_input(input->name, input->specs[0]), 0};
  share_sources(view.data, map);
  share_sources(view.captured, map);
  for (size_t s = 0; s < first.size(); ++s)
    map[{view.carries[s].slot.inner, 0}] = NodeEntry(map.at({view.carries[first[s]].slot.inner, 0}));
  for (const NodeEntry& output : trial.import(view.body, view.body.outputs(), map)) trial.add_output(output);
  passes::merge(trial);
  std::vector<NodeEntry> next;
  for (const LoopView::Carry& state : view.carries) next.push_back(trial.outputs()[static_cast<size_t>(state.next)]);
  return next;
}

}  // namespace

std::vector<size_t> first_equal_states(const LoopView& view) {
  std::vector<size_t> first(view.carries.size());
  for (size_t s = 0; s < first.size(); ++s) {
    first[s] = s;
    for (size_t t = 0; t < s && first[s] == s; ++t)
      if (first[t] == t && start_alike(view, view.carries[t], view.carries[s])) first[s] = t;
  }
  while (true) {
    Graph trial(view.body.train());
    const std::vector<NodeEntry> next = next_values(view, first, trial);
    std::vector<size_t> finer(first.size());
    for (size_t s = 0; s < first.size(); ++s) {
      finer[s] = s;
      for (size_t t = 0; t < s && finer[s] == s; ++t)
        if (finer[t] == t && first[t] == first[s] && next[t] == next[s]) finer[s] = t;
    }
    if (finer == first) return first;
    first = std::move(finer);
  }
}

}  // namespace hybridnet
