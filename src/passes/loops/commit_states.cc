#include "passes/loops/commit_states.h"

#include <algorithm>
#include <map>

#include "graph/control/body_graph.h"
#include "graph/control/loop_view.h"

namespace hybridnet {
namespace {

class StateCommitter {
 public:
  explicit StateCommitter(Graph& graph) : graph_(graph), writeback_of_(graph.inputs().size(), -1) {}

  void run() {
    const auto updates = [&](const Node* node) { return updates_states(*node, graph_.train()); };
    const std::vector<Node*> order = graph_.order();
    if (std::none_of(order.begin(), order.end(), updates)) return;
    std::vector<NodePtr> nodes;  // held: lifting replaces nodes
    for (Node* node : graph_.schedule()) nodes.emplace_back(node);
    for (const NodePtr& node : nodes) {
      if (!updates(node.get())) continue;
      if (node->subgraphs.empty())
        commit(*node);
      else
        lift(*node);
    }
  }

 private:
  int state_number(const NodeEntry& entry) const { return graph_.input_index(entry.node.get()); }

  NodeEntry latest(const NodeEntry& state) const {
    const int number = state_number(state);
    const int writeback = number < 0 ? -1 : writeback_of_[static_cast<size_t>(number)];
    return writeback < 0 ? state : graph_.writebacks()[static_cast<size_t>(writeback)].value;
  }

  // A state that several nodes update (a layer used twice) passes from one to the next.
  void write(int number, const NodeEntry& value) {
    int& writeback = writeback_of_[static_cast<size_t>(number)];
    if (writeback < 0) {
      writeback = static_cast<int>(graph_.writebacks().size());
      graph_.add_writeback(number, value);
    } else {
      graph_.set_writeback(writeback, value);
    }
  }

  void commit(Node& node) {
    for (int output = 0; output < static_cast<int>(node.specs.size()); ++output) {
      const int state = node.op->writeback_input(node.params->data(), output);
      if (state < 0 || state >= static_cast<int>(node.inputs.size())) continue;
      const NodeEntry before = node.inputs[static_cast<size_t>(state)];
      const int number = state_number(before);
      if (number < 0) continue;
      if (const NodeEntry now = latest(before); !(now == before)) graph_.set_input(node, state, now);
      write(number, {NodePtr(&node), static_cast<uint32_t>(output)});
    }
  }

  // ----------------------------------------------------------------------------------------- loops and branches
  void lift(Node& node) {
    if (control_kind(node) == ControlKind::kCond)
      lift_cond(node);
    else
      lift_loop(node);
  }

  // A state that an iteration writes becomes a carry.
  void lift_loop(Node& node) {
    LoopView view(graph_, node);
    commit_states(view.body);
    std::vector<std::pair<int, size_t>> written;  // number of the state, carry
    for (const Graph::Writeback& writeback : view.body.writebacks()) {
      const NodeEntry state{view.body.inputs()[static_cast<size_t>(writeback.input)], 0};
      const LoopView::Slot* slot = LoopView::find(view.captured, state);
      const int number = slot ? state_number(slot->outer) : -1;
      if (number < 0) continue;
      written.emplace_back(number, view.carries.size());
      view.carries.push_back({*slot, view.output_of(writeback.value), -1});
      std::erase_if(view.captured, [&](const LoopView::Slot& other) { return other.inner == state.node; });
    }
    if (written.empty()) return;
    for (LoopView::Slot& slot : view.data) slot.outer = latest(slot.outer);
    for (LoopView::Slot& slot : view.captured) slot.outer = latest(slot.outer);
    for (LoopView::Carry& carry : view.carries) carry.slot.outer = latest(carry.slot.outer);
    const NodePtr made = view.put_together(graph_, node);
    for (const auto& [number, carry] : written) write(number, view.final_carry(made, carry));
    view.replace(graph_, node, made);
  }

  // New values of those states of a body that are states of this graph, by slot of the node.
  std::map<size_t, NodeEntry> lifted_states(const Node& node, Graph& body) const {
    commit_states(body);
    std::map<size_t, NodeEntry> result;
    for (const Graph::Writeback& writeback : body.writebacks()) {
      const auto slot = static_cast<size_t>(writeback.input);
      if (state_number(node.inputs[slot]) >= 0) result[slot] = writeback.value;
    }
    return result;
  }

  // A branch that leaves a state alone passes it through.
  void lift_cond(Node& node) {
    Graph graphs[] = {graph_of_body(graph_, node, 1), graph_of_body(graph_, node, 2)};
    std::map<size_t, NodeEntry> states[2], all;
    for (size_t b = 0; b < 2; ++b) {
      states[b] = lifted_states(node, graphs[b]);
      all.insert(states[b].begin(), states[b].end());
    }
    if (all.empty()) return;
    BranchSpec spec = branch_of(node);
    const auto first = static_cast<uint32_t>(spec.num_out);
    std::vector<NodeEntry> inputs;
    for (const NodeEntry& input : node.inputs) inputs.push_back(latest(input));
    std::vector<Ref<Subgraph>> bodies{node.subgraphs[0]};
    for (size_t b = 0; b < 2; ++b) {
      std::vector<NodeEntry> outputs = graphs[b].outputs();
      size_t at = first;
      for (const auto& [slot, any] : all) {
        const auto found = states[b].find(slot);
        outputs.insert(outputs.begin() + static_cast<long>(at++),
                       found != states[b].end() ? found->second : NodeEntry{graphs[b].inputs()[slot], 0});
      }
      bodies.push_back(freeze(graphs[b], outputs));
    }
    spec.num_out += static_cast<int32_t>(all.size());
    const NodePtr made = graph_.add(*node.op, boxed(spec), std::move(inputs), &node, std::move(bodies));
    made->attrs = node.attrs;
    uint32_t output = first;
    for (const auto& [slot, any] : all) write(state_number(node.inputs[slot]), {made, output++});
    std::vector<NodeEntry> now;
    for (uint32_t i = 0; i < node.specs.size(); ++i)
      now.push_back({made, i < first ? i : i + static_cast<uint32_t>(all.size())});
    move_readers(graph_, node, now);
  }

  Graph& graph_;
  std::vector<int> writeback_of_;  // per input: number of its write-back, -1: none
};

}  // namespace

bool updates_states(const Node& node, bool train) {
  if (node.is_variable()) return false;
  if (node.op->has_writebacks() &&
      (!node.op->writeback_active || node.op->writeback_active(node.params->data(), train)))
    return true;
  return std::any_of(node.subgraphs.begin(), node.subgraphs.end(), [train](const Ref<Subgraph>& body) {
    const std::vector<Node*> nodes = topological_order(body->outputs);
    return std::any_of(nodes.begin(), nodes.end(),
                       [train](const Node* inner) { return updates_states(*inner, train); });
  });
}

void commit_states(Graph& graph) { StateCommitter(graph).run(); }

}  // namespace hybridnet
