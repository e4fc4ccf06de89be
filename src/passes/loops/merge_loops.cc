// Merges loops that run together: over the same rows, or while the same condition holds. Shared work is done once, rows
// are read once, and the condition is evaluated once.
#include <algorithm>
#include <map>

#include "passes/branches/branch_regions.h"
#include "passes/loops/equal_states.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

bool may_merge(const Node& node) {
  if (!LoopView::can_view(node) || is_random(node) || is_opaque(node) || !node.control.empty()) return false;
  const LoopSpec& loop = loop_of(node);
  return loop.checkpoint.empty() && (!loop.counted || control_kind(node) == ControlKind::kWhileLoop);
}

// True if both slice the same data. Loops with nothing in common gain nothing.
bool share_data(const Node& a, const Node& b) {
  const auto data = [](const Node& node) { return std::span(node.inputs).first(loop_of(node).seqs()); };
  const auto other = data(b);
  return std::any_of(data(a).begin(), data(a).end(), [&](const NodeEntry& entry) {
    return std::find(other.begin(), other.end(), entry) != other.end();
  });
}

// True if both run alike, as far as the nodes themselves show.
bool alike(const Graph& graph, const Node& a, const Node& b) {
  if (a.op != b.op || a.attrs != b.attrs) return false;
  const LoopSpec &p = loop_of(a), &q = loop_of(b);
  if (p.counted != q.counted || (p.counted && !(a.inputs.back() == b.inputs.back())) || p.reverse != q.reverse ||
      p.scalar_slices != q.scalar_slices || p.truncate_gradient != q.truncate_gradient ||
      p.detach_every != q.detach_every)
    return false;
  if (control_kind(a) == ControlKind::kWhileLoop)
    return p.max_iterations == q.max_iterations && p.exact == q.exact && p.on_limit == q.on_limit;
  return rows_of(graph, a) == rows_of(graph, b) && share_data(a, b);
}

bool depends_on(const Node& node, const Node& other) {
  const std::vector<Node*> nodes = topological_order(node.inputs);
  return std::find(nodes.begin(), nodes.end(), &other) != nodes.end();
}

// Two loops side by side in one; it has the condition of the first.
class MergedLoop {
 public:
  MergedLoop(const Graph& graph, Node& a, Node& b)
      : a_(a),
        b_(b),
        view_(graph, a),
        second_(graph, b),
        num_outs_(view_.outs.size()),
        num_carries_(view_.carries.size()) {
    EntryMap map;
    for (const LoopView::Slot& slot : second_.data) view_.data.push_back(take(slot, map));
    for (const LoopView::Slot& slot : second_.captured)
      if (slot.inner) view_.captured.push_back(take(slot, map));
    for (const LoopView::Carry& carry : second_.carries)
      view_.carries.push_back({take(carry.slot, map), carry.next, -1});
    std::vector<int> numbers;  // numbers of the second body's outputs
    for (const NodeEntry& output : view_.body.import(second_.body, second_.body.outputs(), map))
      numbers.push_back(view_.body.add_output(output));
    for (const LoopView::Out& out : second_.outs) view_.outs.push_back({numbers[static_cast<size_t>(out.value)], -1});
    for (size_t s = num_carries_; s < view_.carries.size(); ++s)
      view_.carries[s].next = numbers[static_cast<size_t>(view_.carries[s].next)];
  }

  // True if the condition of the second loop has the same value in every iteration.
  bool has_one_condition() const {
    if (!view_.has_condition()) return true;
    const std::vector<size_t> first = first_equal_states(view_);
    Graph trial(view_.body.train());
    std::map<size_t, NodeEntry> of_state;
    EntryMap of_value;
    auto add = [&](const LoopView& view, size_t first_state) {
      EntryMap map;
      auto bind = [&](const NodePtr& tested, NodeEntry& known) {
        if (!known.node) known = {trial.add_input(tested->name, tested->specs[0]), 0};
        map[{tested, 0}] = known;
      };
      for (size_t s = 0; s < view.carries.size(); ++s)
        if (const NodePtr& tested = view.carries[s].slot.tested) bind(tested, of_state[first[first_state + s]]);
      for (const LoopView::Slot& slot : view.captured)
        if (slot.tested) bind(slot.tested, of_value[slot.outer]);
      trial.add_output(trial.import(*view.condition, view.condition->outputs(), map)[0]);
    };
    add(view_, 0);  // slots of the second loop are not tested here
    add(second_, num_carries_);
    merge(trial);
    return trial.outputs()[0] == trial.outputs()[1];
  }

  void put(Graph& graph) {
    const NodePtr made = view_.put_together(graph, a_);
    view_.replace(graph, a_, made);
    std::vector<NodeEntry> now(b_.specs.size());
    for (size_t i = 0; i < second_.outs.size(); ++i) now[i] = view_.out(made, num_outs_ + i);
    for (size_t s = 0; s < second_.carries.size(); ++s)
      now[second_.outs.size() + s] = view_.final_carry(made, num_carries_ + s);
    if (view_.has_condition()) now.back() = view_.final_carry(made, view_.carries.size());
    move_readers(graph, b_, now);
  }

 private:
  LoopView::Slot take(const LoopView::Slot& slot, EntryMap& map) {
    const NodePtr inner = view_.body.add_input(slot.inner->name, slot.inner->specs[0]);
    map[{slot.inner, 0}] = {inner, 0};
    return {slot.outer, inner, nullptr};
  }

  Node &a_, &b_;
  LoopView view_;
  LoopView second_;
  const size_t num_outs_, num_carries_;  // counts of the first loop
};

bool merge_one_pair(Graph& graph) {
  std::vector<Node*> loops;
  for (Node* node : graph.order())
    if (may_merge(*node)) loops.push_back(node);
  if (loops.size() < 2) return false;
  const BranchRegions regions(graph);
  for (size_t j = 1; j < loops.size(); ++j) {
    for (size_t i = 0; i < j; ++i) {
      Node &a = *loops[i], &b = *loops[j];
      // The order is topological: a cannot depend on b.
      if (!alike(graph, a, b) || depends_on(b, a)) continue;
      // A loop that only one branch of a cond needs runs with that branch; merged into a loop that runs always, it
      // would always run.
      if (!(regions.of(a) == regions.of(b))) continue;
      MergedLoop merged(graph, a, b);
      if (!merged.has_one_condition()) continue;
      merged.put(graph);
      return true;
    }
  }
  return false;
}

}  // namespace

bool merge_loops(Graph& graph) {
  bool changed = false;
  while (merge_one_pair(graph)) changed = true;  // each merge changes the paths
  return changed;
}

}  // namespace hybridnet::passes
