// Loops over the same rows that read something in common become one: shared work is done once, and rows are read once.
#include <algorithm>

#include "passes/loop_view.h"
#include "passes/register_all.h"

namespace hybridnet::passes {
namespace {

bool may_merge(const Node& node) {
  const auto& p = params_of<ForeachParams>(node);
  return !p.counted && p.checkpoint.empty() && !is_random(node) && !has_effect(node) && node.control.empty();
}

bool alike(const Graph& graph, const Node& a, const Node& b) {
  const auto &p = params_of<ForeachParams>(a), &q = params_of<ForeachParams>(b);
  return rows_of(graph, a) == rows_of(graph, b) && p.reverse == q.reverse && p.scalar_slices == q.scalar_slices &&
         p.truncate_gradient == q.truncate_gradient && p.detach_every == q.detach_every && a.attrs == b.attrs;
}

// Do both take slices of the same data? Loops with nothing in common gain nothing.
bool share_data(const Node& a, const Node& b) {
  const auto data = [](const Node& node) {
    return std::span(node.inputs).first(params_of<ForeachParams>(node).in_data_locs.size());
  };
  const auto other = data(b);
  return std::any_of(data(a).begin(), data(a).end(), [&](const NodeEntry& entry) {
    return std::find(other.begin(), other.end(), entry) != other.end();
  });
}

bool depends_on(const Node& node, const Node& other) {
  const std::vector<Node*> nodes = topological_order(node.inputs);
  return std::find(nodes.begin(), nodes.end(), &other) != nodes.end();
}

void merge(Graph& graph, Node& a, Node& b) {
  LoopView view(graph, a);
  LoopView second(graph, b);
  const auto outs_of_a = view.outs, outs_of_b = second.outs;
  const auto states_of_a = view.states, states_of_b = second.states;
  EntryMap map;
  auto take = [&](const LoopView::Slot& slot) {
    const NodePtr inner = view.body.add_input(slot.inner->name, slot.inner->specs[0]);
    map[{slot.inner, 0}] = {inner, 0};
    return LoopView::Slot{slot.outer, inner};
  };
  for (const LoopView::Slot& slot : second.data) view.data.push_back(take(slot));
  for (const LoopView::Slot& slot : second.captured) view.captured.push_back(take(slot));
  for (const LoopView::State& state : second.states) view.states.push_back({take(state.slot), state.next, -1});
  std::vector<int> numbers;  // of the second body's outputs
  for (const NodeEntry& output : view.body.import(second.body, second.body.outputs(), map))
    numbers.push_back(view.body.add_output(output));
  for (const LoopView::Out& out : outs_of_b) view.outs.push_back({numbers[static_cast<size_t>(out.value)], -1});
  for (size_t s = 0; s < states_of_b.size(); ++s) {
    LoopView::State& state = view.states[states_of_a.size() + s];
    state.next = numbers[static_cast<size_t>(state.next)];
  }
  const NodePtr made = view.put_together(graph, a);
  const NodePtr node_a(&a), node_b(&b);
  view.replace(graph, a, made, {});
  auto replace = [&](int output, int now) {
    if (graph.contains(node_b.get()) && graph.is_used(*node_b, output))
      graph.replace({node_b, static_cast<uint32_t>(output)}, {made, static_cast<uint32_t>(now)});
  };
  for (size_t i = 0; i < outs_of_b.size(); ++i) replace(outs_of_b[i].output, view.output_of_out(outs_of_a.size() + i));
  for (size_t s = 0; s < states_of_b.size(); ++s)
    replace(states_of_b[s].output, view.output_of_state(states_of_a.size() + s));
}

bool merge_one_pair(Graph& graph) {
  std::vector<Node*> loops;
  for (Node* node : graph.order())
    if (control_kind(*node) == ControlKind::kForeach && may_merge(*node)) loops.push_back(node);
  for (size_t j = 1; j < loops.size(); ++j) {
    for (size_t i = 0; i < j; ++i) {
      Node &a = *loops[i], &b = *loops[j];
      // The order is topological: a cannot depend on b.
      if (!alike(graph, a, b) || !share_data(a, b) || depends_on(b, a)) continue;
      merge(graph, a, b);
      return true;
    }
  }
  return false;
}

bool merge_loops(Graph& graph) {
  bool changed = false;
  while (merge_one_pair(graph)) changed = true;  // paths are looked at anew after each
  return changed;
}

}  // namespace

void register_merge_loops(RewriteDatabase& db) {
  db.pass("merge_loops", merge_loops).at(2.6).tags({"fast_run", "loop"});
}

}  // namespace hybridnet::passes
