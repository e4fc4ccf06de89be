// A loop over stacked layers becomes one loop per layer. A layer that another one reads does not depend on it, so it
// can run through all iterations first; then the second one's product with its input is one product over all rows
// (push_before_loop) instead of one per iteration, forwards and backwards. In training only: values between the loops
// are kept for the gradient anyway, while in prediction they would need memory in proportion to the iterations.
//
// Loops in the body that read the slices but no state go first, too, in a loop without states: its iterations do not
// wait for each other, so that they may run side by side.
#include <algorithm>
#include <optional>
#include <unordered_set>

#include "graph/control/loop_view.h"
#include "passes/gradient/node_builders.h"
#include "passes/loops/row_work.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

using NodeSet = std::unordered_set<const Node*>;

bool is_plain(const LoopSpec& loop) {
  return !loop.counted && loop.checkpoint.empty() && loop.truncate_gradient == 0 && loop.detach_every == 0;
}

bool is_loop(const Node& node) {
  return control_kind(node) == ControlKind::kForeach || control_kind(node) == ControlKind::kWhileLoop;
}

bool has_carries_and_loops(const Node& node) {
  const LoopSpec& loop = loop_of(node);
  if (!is_plain(loop) || loop.num_carry == 0 || loop.num_seq == 0 || is_opaque(node)) return false;
  const std::vector<Node*> nodes = topological_order(node.subgraphs[0]->outputs);
  return std::any_of(nodes.begin(), nodes.end(), [](const Node* inner) { return is_loop(*inner); });
}

bool has_carries_and_work(const Node& node) {
  const LoopSpec& loop = loop_of(node);
  if (!is_plain(loop) || loop.num_carry < 2) return false;
  int products = 0;
  for (const Node* inner : topological_order(node.subgraphs[0]->outputs)) {
    if (!inner->op) continue;
    if (is_opaque(*inner)) return false;
    products += inner->op->heavy ? 1 : 0;
  }
  return products >= 2;
}

class LoopSplit {
 public:
  LoopSplit(Graph& graph, Node& node) : graph_(graph), node_(node), view_(graph, node), body_(view_.body) {}

  // Returns the second loop, or null if there is nothing to split.
  NodePtr run() {
    for (Node* node : body_.order()) {
      if (node->is_variable() || !works_row_by_row(body_, *node) || !reads_captured(*node)) continue;
      const NodeEntry read = behind_views(node->inputs[0]);
      if (read.node->is_variable()) continue;
      find_first(read);
      if (first_.count(node) == 0 && some_carry_depends_on(*node) && find_crossing(read)) return split();
    }
    return nullptr;
  }

  // The same, with the loops that read no state as the first loop.
  NodePtr run_for_loops_of_rows() {
    in_first_.assign(view_.carries.size(), false);
    const std::vector<NodeEntry> loops = loops_of_rows();
    if (loops.empty()) return nullptr;
    const std::vector<Node*> nodes = topological_order(loops);
    first_ = {nodes.begin(), nodes.end()};
    const int64_t most = graph_.train() ? kMaxRowBytes : kMaxRowBytesInPrediction;
    const std::optional<int64_t> bytes = find_crossing();
    return bytes && *bytes * view_.rows() <= most ? split() : nullptr;
  }

 private:
  // Outputs of inner loops that depend on slices, but on no state and no draw.
  std::vector<NodeEntry> loops_of_rows() const {
    NodeSet reads_slice, stays;
    for (const LoopView::Slot& slot : view_.data) reads_slice.insert(slot.inner.get());
    for (const LoopView::Carry& carry : view_.carries) stays.insert(carry.slot.inner.get());
    std::vector<NodeEntry> values;
    for (Node* node : body_.order()) {
      if (node->is_variable()) continue;
      for (const NodeEntry& input : node->inputs) {
        if (reads_slice.count(input.node.get()) != 0) reads_slice.insert(node);
        if (stays.count(input.node.get()) != 0) stays.insert(node);
      }
      if (is_random(*node)) stays.insert(node);
      if (!is_loop(*node) || stays.count(node) != 0 || reads_slice.count(node) == 0) continue;
      for (uint32_t i = 0; i < node->specs.size(); ++i)
        if (body_.is_used(*node, static_cast<int>(i))) values.push_back({NodePtr(node), i});
    }
    return values;
  }

  bool reads_captured(const Node& node) const {
    return std::all_of(node.inputs.begin() + 1, node.inputs.end(),
                       [&](const NodeEntry& input) { return LoopView::find(view_.captured, input) != nullptr; });
  }

  const NodeEntry& next_of(size_t carry) const { return view_.entry(view_.carries[carry].next); }
  const Node* slot_of(size_t carry) const { return view_.carries[carry].slot.inner.get(); }

  // Finds the nodes and states of the first loop: all that the value depends on, in this iteration and through states
  // in earlier ones.
  void find_first(const NodeEntry& value) {
    std::vector<NodeEntry> roots{value};
    in_first_.assign(view_.carries.size(), false);
    for (bool changed = true; changed;) {
      changed = false;
      const std::vector<Node*> nodes = topological_order(roots);
      first_ = {nodes.begin(), nodes.end()};
      for (size_t s = 0; s < view_.carries.size(); ++s) {
        if (in_first_[s] || first_.count(slot_of(s)) == 0) continue;
        in_first_[s] = changed = true;
        roots.push_back(next_of(s));
      }
    }
  }

  bool some_carry_depends_on(const Node& node) const {
    for (size_t s = 0; s < view_.carries.size(); ++s) {
      if (in_first_[s]) continue;
      const std::vector<Node*> nodes = topological_order({next_of(s)});
      if (std::find(nodes.begin(), nodes.end(), &node) != nodes.end()) return true;
    }
    return false;
  }

  // True if the first loop makes the entry: a node of it, or one of its states at the start of an iteration.
  bool from_first(const NodeEntry& entry) const {
    if (!entry.node->is_variable()) return first_.count(entry.node.get()) != 0;
    for (size_t s = 0; s < view_.carries.size(); ++s)
      if (in_first_[s] && slot_of(s) == entry.node.get()) return true;
    return false;
  }

  // Finds the values that pass from the first loop to the second. False if they are much larger than `value`, which
  // makes the split worth it.
  bool find_crossing(const NodeEntry& value) {
    const std::optional<int64_t> bytes = find_crossing();
    return bytes && *bytes <= 4 * body_.spec(value).bytes() && *bytes * view_.rows() <= kMaxRowBytes;
  }

  // Returns the bytes that pass per iteration; nothing if a value cannot pass.
  std::optional<int64_t> find_crossing() {
    crossing_.clear();
    auto cross = [&](const NodeEntry& entry) {
      if (from_first(entry) && std::find(crossing_.begin(), crossing_.end(), entry) == crossing_.end())
        crossing_.push_back(entry);
    };
    for (const Node* node : body_.order()) {
      if (node->is_variable() || first_.count(node) != 0) continue;
      for (const NodeEntry& input : node->inputs) cross(input);
    }
    for (size_t s = 0; s < view_.carries.size(); ++s)
      if (!in_first_[s]) cross(next_of(s));
    int64_t bytes = 0;
    for (const NodeEntry& entry : crossing_) {
      bytes += body_.spec(entry).bytes();
      if (body_.spec(entry).shape.ndim() == 0) return std::nullopt;  // slices of the rows would have an axis
    }
    return bytes;
  }

  // Each of the two loops has some of the outputs and carries of the whole.
  NodePtr split() {
    std::vector<LoopView::Out> outs[2];
    for (const LoopView::Out& out : view_.outs) outs[from_first(view_.entry(out.value)) ? 0 : 1].push_back(out);
    std::vector<LoopView::Carry> carries[2];
    for (size_t s = 0; s < view_.carries.size(); ++s) carries[in_first_[s] ? 0 : 1].push_back(view_.carries[s]);
    std::vector<NodeEntry> now(node_.specs.size());
    auto add = [&](const std::vector<LoopView::Carry>& chosen) {
      view_.carries = chosen;
      const NodePtr made = view_.put_together(graph_, node_);
      for (size_t i = 0; i < view_.outs.size(); ++i)
        if (view_.outs[i].output >= 0) now[static_cast<size_t>(view_.outs[i].output)] = view_.out(made, i);
      for (size_t s = 0; s < chosen.size(); ++s)
        now[static_cast<size_t>(chosen[s].output)] = view_.final_carry(made, s);
      return made;
    };

    view_.outs.clear();
    for (const NodeEntry& entry : crossing_) view_.outs.push_back({view_.output_of(entry), -1});
    std::vector<std::pair<int, size_t>> same;  // output of the node, number of the out that has its value
    for (const LoopView::Out& out : outs[0]) {
      const auto known = std::find_if(view_.outs.begin(), view_.outs.end(), [&](const LoopView::Out& other) {
        return view_.entry(other.value) == view_.entry(out.value);
      });
      same.emplace_back(out.output, known - view_.outs.begin());
      if (known == view_.outs.end()) view_.outs.push_back({out.value, -1});
    }
    const NodePtr one = add(carries[0]);
    for (const auto& [output, i] : same) now[static_cast<size_t>(output)] = view_.out(one, i);

    for (uint32_t i = 0; i < crossing_.size(); ++i) {
      const LoopView::Slot& slot = view_.add_sequence({one, i}, body_.spec(crossing_[i]), crossing_[i].node->name);
      body_.replace(crossing_[i], {slot.inner, 0});
    }
    view_.outs = outs[1];
    const NodePtr two = add(carries[1]);
    move_readers(graph_, node_, now);
    return two;
  }

  Graph& graph_;
  Node& node_;
  LoopView view_;
  Graph& body_;
  NodeSet first_;               // nodes that the first loop computes
  std::vector<bool> in_first_;  // per state
  std::vector<NodeEntry> crossing_;
};

}  // namespace

bool loops_of_rows_first(Graph& graph) {
  bool changed = false;
  for_each_node(graph, {ControlKind::kForeach}, [&](Node& node) {
    if (has_carries_and_loops(node) && rows_of(graph, node) >= 2)
      changed = LoopSplit(graph, node).run_for_loops_of_rows() || changed;
  });
  return changed;
}

bool split_loops(Graph& graph) {
  if (!graph.train()) return false;
  bool changed = false;
  for_each_node(graph, {ControlKind::kForeach}, [&](Node& node) {
    NodePtr rest(&node);
    while (rest && has_carries_and_work(*rest)) {
      rest = rows_of(graph, *rest) < 2 ? nullptr : LoopSplit(graph, *rest).run();
      changed = changed || rest;
    }
  });
  return changed;
}

}  // namespace hybridnet::passes
