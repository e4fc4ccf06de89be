// A loop over stacked layers becomes one loop per layer. The layer that a second one reads does not depend on it, so it
// can run through all iterations first; then the second one's product with its input is one product over all rows
// (push_before_loop) instead of one per iteration, forwards and backwards. In training only: what passes between the
// loops is kept for the gradient anyway, while in prediction it would need memory in proportion to the iterations.
//
// Loops in the body that read the slices but no state go first, too, in a loop without states: its iterations do not
// wait for each other, so that they may run side by side.
#include <algorithm>
#include <optional>
#include <unordered_set>

#include "graph/control/body_graph.h"
#include "graph/control/control_flow.h"
#include "passes/loops/row_work.h"
#include "passes/register_all.h"

namespace hybridnet::passes {
namespace {

using NodeSet = std::unordered_set<const Node*>;

constexpr int64_t kMostRowBytesInPrediction = int64_t{16} << 20;

bool is_plain(const ForeachParams& p) {
  return !p.counted && p.checkpoint.empty() && p.truncate_gradient == 0 && p.detach_every == 0;
}

bool is_loop(const Node& node) {
  return control_kind(node) == ControlKind::kForeach || control_kind(node) == ControlKind::kWhileLoop;
}

bool has_states_and_loops(const Node& node) {
  const auto& p = params_of<ForeachParams>(node);
  if (!is_plain(p) || p.in_state_locs.empty() || p.in_data_locs.empty() || is_opaque(node)) return false;
  const std::vector<Node*> nodes = topological_order(node.subgraphs[0]->outputs);
  return std::any_of(nodes.begin(), nodes.end(), [](const Node* inner) { return is_loop(*inner); });
}

bool has_states_and_work(const Node& node) {
  const auto& p = params_of<ForeachParams>(node);
  if (!is_plain(p) || p.in_state_locs.size() < 2) return false;
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
  LoopSplit(Graph& graph, Node& node, int64_t rows)
      : graph_(graph),
        node_(node),
        p_(params_of<ForeachParams>(node)),
        rows_(rows),
        body_(make_body()),
        state_inputs_(to_ints(p_.in_state_locs)) {}

  // The second loop, null when there is nothing to split.
  NodePtr run() {
    for (Node* node : body_.order()) {
      if (node->is_variable() || !works_row_by_row(body_, *node) || !reads_captured(*node)) continue;
      const NodeEntry read = root(node->inputs[0]);
      if (read.node->is_variable()) continue;
      find_first(read);
      if (first_.count(node) == 0 && some_state_depends_on(*node) && find_crossing(read)) return split();
    }
    return nullptr;
  }

  // The same with the loops that read no state as the first loop.
  NodePtr run_for_loops_of_rows() {
    in_first_.assign(state_inputs_.size(), false);
    const std::vector<NodeEntry> loops = loops_of_rows();
    if (loops.empty()) return nullptr;
    const std::vector<Node*> nodes = topological_order(loops);
    first_ = {nodes.begin(), nodes.end()};
    const int64_t most = graph_.train() ? kMostRowBytes : kMostRowBytesInPrediction;
    const std::optional<int64_t> bytes = find_crossing();
    return bytes && *bytes * rows_ <= most ? split() : nullptr;
  }

 private:
  // What loops give that depend on slices, but on no state and no draw.
  std::vector<NodeEntry> loops_of_rows() const {
    NodeSet reads_slice, stays;
    for (int at : to_ints(p_.in_data_locs)) reads_slice.insert(body_.inputs()[static_cast<size_t>(at)].get());
    for (size_t s = 0; s < state_inputs_.size(); ++s) stays.insert(slot_of_state(s));
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

  Graph make_body() const {
    std::vector<TensorSpec> inputs;
    for (const NodeEntry& input : node_.inputs) inputs.push_back(graph_.spec(input));
    return body_graph(node_, 0, body_input_specs(node_, 0, inputs), graph_.train());
  }

  static NodeEntry root(NodeEntry entry) {
    while (!entry.node->is_variable() && entry.node->op->is_view && entry.node->specs.size() == 1)
      entry = entry.node->inputs[0];
    return entry;
  }

  bool reads_captured(const Node& node) const {
    return std::all_of(node.inputs.begin() + 1, node.inputs.end(), [&](const NodeEntry& input) {
      const int at = body_.input_index(input.node.get());
      return std::find(p_.remain_locs.begin(), p_.remain_locs.end(), std::optional<int64_t>(at)) !=
             p_.remain_locs.end();
    });
  }

  const NodeEntry& next_of_state(size_t s) const { return body_.outputs()[static_cast<size_t>(p_.num_out_data) + s]; }
  const Node* slot_of_state(size_t s) const { return body_.inputs()[static_cast<size_t>(state_inputs_[s])].get(); }

  // What the first loop computes: all that the value depends on, in this iteration and through states in earlier ones.
  void find_first(const NodeEntry& value) {
    std::vector<NodeEntry> roots{value};
    in_first_.assign(state_inputs_.size(), false);
    for (bool changed = true; changed;) {
      changed = false;
      const std::vector<Node*> nodes = topological_order(roots);
      first_ = {nodes.begin(), nodes.end()};
      for (size_t s = 0; s < state_inputs_.size(); ++s) {
        if (in_first_[s] || first_.count(slot_of_state(s)) == 0) continue;
        in_first_[s] = changed = true;
        roots.push_back(next_of_state(s));
      }
    }
  }

  bool some_state_depends_on(const Node& node) const {
    for (size_t s = 0; s < state_inputs_.size(); ++s) {
      if (in_first_[s]) continue;
      const std::vector<Node*> nodes = topological_order({next_of_state(s)});
      if (std::find(nodes.begin(), nodes.end(), &node) != nodes.end()) return true;
    }
    return false;
  }

  // Made by the first loop: computed there, or one of its states as an iteration gets it.
  bool from_first(const NodeEntry& entry) const {
    if (!entry.node->is_variable()) return first_.count(entry.node.get()) != 0;
    for (size_t s = 0; s < state_inputs_.size(); ++s)
      if (in_first_[s] && slot_of_state(s) == entry.node.get()) return true;
    return false;
  }

  // What passes from the first loop to the second. False where it is much more than the value that is worth it.
  bool find_crossing(const NodeEntry& value) {
    const std::optional<int64_t> bytes = find_crossing();
    return bytes && *bytes <= 4 * body_.spec(value).bytes() && *bytes * rows_ <= kMostRowBytes;
  }

  // Its bytes per iteration; nothing if it cannot pass.
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
    for (size_t s = 0; s < state_inputs_.size(); ++s)
      if (!in_first_[s]) cross(next_of_state(s));
    int64_t bytes = 0;
    for (const NodeEntry& entry : crossing_) {
      bytes += body_.spec(entry).bytes();
      if (body_.spec(entry).shape.ndim() == 0) return std::nullopt;  // slices of the rows would have an axis
    }
    return bytes;
  }

  // One of the two loops: a choice of the body's inputs and outputs.
  struct Part {
    std::vector<NodeEntry> stacked;
    std::vector<size_t> states;
    std::vector<std::pair<NodePtr, NodeEntry>> rows;  // further slices: slot, value outside
  };

  NodePtr add(const Part& part) {
    std::vector<NodeEntry> outputs = part.stacked;
    for (size_t s : part.states) outputs.push_back(body_.outputs()[static_cast<size_t>(p_.num_out_data) + s]);
    const Ref<Subgraph> whole = freeze(body_, outputs);
    NodeSet read;
    for (const Node* node : topological_order(whole->outputs)) read.insert(node);
    auto body = make_ref<Subgraph>();
    body->outputs = whole->outputs;
    ForeachParams p = p_;
    p.in_data_locs.clear();
    p.in_state_locs.clear();
    p.remain_locs.clear();
    std::vector<NodeEntry> inputs;
    const std::vector<int> sources = body_sources(node_, 0);
    auto take = [&](OptionalInts& locs, size_t at, const NodeEntry& value) {
      locs.push_back(static_cast<int64_t>(body->inputs.size()));
      body->inputs.push_back(whole->inputs[at]);
      inputs.push_back(value);
    };
    auto outer = [&](size_t at) { return node_.inputs[static_cast<size_t>(sources[at])]; };
    auto is_read = [&](size_t at) { return read.count(whole->inputs[at].get()) != 0; };
    for (int at : to_ints(p_.in_data_locs)) {
      const auto position = static_cast<size_t>(at);
      if (is_read(position)) take(p.in_data_locs, position, outer(position));
    }
    for (const auto& [slot, value] : part.rows)
      take(p.in_data_locs, static_cast<size_t>(body_.input_index(slot.get())), value);
    for (size_t s : part.states)
      take(p.in_state_locs, static_cast<size_t>(state_inputs_[s]), outer(static_cast<size_t>(state_inputs_[s])));
    for (int at : to_ints(p_.remain_locs)) {
      const auto position = static_cast<size_t>(at);
      if (is_read(position)) take(p.remain_locs, position, outer(position));
    }
    p.length = p.in_data_locs.empty() ? rows_ : -1;
    p.num_args = static_cast<int32_t>(inputs.size());
    p.num_out_data = static_cast<int32_t>(part.stacked.size());
    p.num_outputs = static_cast<int32_t>(outputs.size());
    const NodePtr made =
        graph_.add(*node_.op, ParamSchema<ForeachParams>::box(std::move(p)), std::move(inputs), &node_, {body});
    made->attrs = node_.attrs;
    return made;
  }

  NodePtr split() {
    const auto num_out_data = static_cast<size_t>(p_.num_out_data);
    std::vector<NodeEntry> replaced(body_.outputs().size());
    Part first{crossing_, {}, {}}, second;
    std::vector<std::pair<size_t, size_t>> stacked_first, stacked_second;  // output of the body, output of the part
    for (size_t i = 0; i < num_out_data; ++i) {
      const NodeEntry& output = body_.outputs()[i];
      if (!from_first(output)) {
        stacked_second.emplace_back(i, stacked_second.size());
        continue;
      }
      const auto known = std::find(first.stacked.begin(), first.stacked.end(), output);
      stacked_first.emplace_back(i, static_cast<size_t>(known - first.stacked.begin()));
      if (known == first.stacked.end()) first.stacked.push_back(output);
    }
    for (size_t s = 0; s < state_inputs_.size(); ++s) (in_first_[s] ? first : second).states.push_back(s);
    const NodePtr one = add(first);

    for (size_t i = 0; i < crossing_.size(); ++i) {
      const NodePtr slot = body_.add_input(crossing_[i].node->name, body_.spec(crossing_[i]));
      body_.replace(crossing_[i], {slot, 0});
      second.rows.push_back({slot, {one, static_cast<uint32_t>(i)}});
    }
    for (const auto& [output, number] : stacked_second) second.stacked.push_back(body_.outputs()[output]);
    const NodePtr two = add(second);

    for (const auto& [output, number] : stacked_first) replaced[output] = {one, static_cast<uint32_t>(number)};
    for (const auto& [output, number] : stacked_second) replaced[output] = {two, static_cast<uint32_t>(number)};
    for (const auto& [part, made] : {std::pair(&first, one), std::pair(&second, two)})
      for (size_t i = 0; i < part->states.size(); ++i)
        replaced[num_out_data + part->states[i]] = {made, static_cast<uint32_t>(part->stacked.size() + i)};
    const NodePtr self(&node_);
    for (uint32_t i = 0; i < replaced.size(); ++i)
      if (graph_.contains(self.get()) && graph_.is_used(*self, static_cast<int>(i)))
        graph_.replace({self, i}, replaced[i]);
    return two;
  }

  Graph& graph_;
  Node& node_;
  const ForeachParams p_;
  const int64_t rows_;
  Graph body_;
  const std::vector<int> state_inputs_;
  NodeSet first_;               // nodes that the first loop computes
  std::vector<bool> in_first_;  // per state
  std::vector<NodeEntry> crossing_;
};

int64_t rows_of(const Graph& graph, const Node& loop) {
  const auto& p = params_of<ForeachParams>(loop);
  return p.in_data_locs.empty() ? p.length : graph.spec(loop.inputs[0]).shape[0];
}

bool put_loops_of_rows_first(Graph& graph) {
  bool changed = false;
  for (Node* node : graph.order()) {
    if (!graph.contains(node) || control_kind(*node) != ControlKind::kForeach || !has_states_and_loops(*node)) continue;
    if (const int64_t rows = rows_of(graph, *node); rows >= 2)
      changed = LoopSplit(graph, *node, rows).run_for_loops_of_rows() || changed;
  }
  return changed;
}

bool split_loops(Graph& graph) {
  if (!graph.train()) return false;
  bool changed = false;
  for (Node* node : graph.order()) {
    if (!graph.contains(node) || control_kind(*node) != ControlKind::kForeach) continue;
    NodePtr rest(node);
    while (rest && has_states_and_work(*rest)) {
      const int64_t rows = rows_of(graph, *rest);
      rest = rows < 2 ? nullptr : LoopSplit(graph, *rest, rows).run();
      changed = changed || rest;
    }
  }
  return changed;
}

}  // namespace

void register_split_loops(RewriteDatabase& db) {
  db.pass("loops_of_rows_first", put_loops_of_rows_first).at(2.8).tags({"fast_run", "loop"});
  db.pass("split_loops", split_loops).at(2.9).tags({"fast_run", "loop"});
}

}  // namespace hybridnet::passes
