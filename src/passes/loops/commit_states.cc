#include "passes/loops/commit_states.h"

#include <algorithm>
#include <map>

#include "graph/control/body_graph.h"
#include "graph/control/control_flow.h"

namespace hybridnet {
namespace {

class StateCommitter {
 public:
  explicit StateCommitter(Graph& graph) : graph_(graph), writeback_of_(graph.inputs().size(), -1) {}

  void run() {
    for (Node* node : graph_.schedule()) {
      if (!updates_states(*node, graph_.train())) continue;
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

  // --------------------------------------------------------------------------------------------- loops and branches
  Graph committed_body(const Node& node, size_t body) {
    std::vector<TensorSpec> inputs;
    for (const NodeEntry& input : node.inputs) inputs.push_back(graph_.spec(input));
    Graph result = body_graph(node, body, body_input_specs(node, body, inputs), graph_.train());
    commit_states(result);
    return result;
  }

  void lift(Node& node) {
    switch (control_kind(node)) {
      case ControlKind::kForeach:
        return lift_foreach(node);
      case ControlKind::kWhileLoop:
        return lift_while(node);
      default:
        return lift_cond(node);
    }
  }

  struct Lifted {
    int body_input;
    int number;  // of the state among the graph's inputs
    NodeEntry value;
  };

  // New states of a loop's body that are states of this graph.
  std::vector<Lifted> lifted_states(const Node& node, const Graph& body, const std::vector<int>& sources,
                                    const std::vector<int>& carried) {
    std::vector<Lifted> result;
    for (const Graph::Writeback& writeback : body.writebacks()) {
      const int number = state_number(node.inputs[static_cast<size_t>(sources[static_cast<size_t>(writeback.input)])]);
      const bool is_carried = std::find(carried.begin(), carried.end(), writeback.input) != carried.end();
      if (number >= 0 && !is_carried) result.push_back({writeback.input, number, writeback.value});
    }
    return result;
  }

  static std::vector<NodeEntry> outputs_with(const Graph& body, const std::vector<Lifted>& states) {
    std::vector<NodeEntry> outputs = body.outputs();
    for (const Lifted& state : states) outputs.push_back(state.value);
    return outputs;
  }

  void replace(Node& node, const NodePtr& made, uint32_t first_moved, uint32_t moved_by) {
    made->attrs = node.attrs;
    const NodePtr self(&node);
    for (uint32_t i = 0; i < node.specs.size() && graph_.contains(&node); ++i)
      if (graph_.is_used(node, static_cast<int>(i)))
        graph_.replace({self, i}, {made, i < first_moved ? i : i + moved_by});
  }

  void lift_foreach(Node& node) {
    ForeachParams p = params_of<ForeachParams>(node);
    const std::vector<int> sources = body_sources(node, 0);
    const Graph body = committed_body(node, 0);
    const std::vector<Lifted> states = lifted_states(node, body, sources, to_ints(p.in_state_locs));
    if (states.empty()) return;
    for (const Lifted& state : states) {
      p.in_state_locs.push_back(state.body_input);
      std::erase(p.remain_locs, std::optional<int64_t>(state.body_input));
    }
    std::vector<NodeEntry> inputs;
    for (const OptionalInts* list : {&p.in_data_locs, &p.in_state_locs, &p.remain_locs})
      for (int at : to_ints(*list))
        inputs.push_back(latest(node.inputs[static_cast<size_t>(sources[static_cast<size_t>(at)])]));
    if (p.counted) inputs.push_back(node.inputs.back());
    const auto before = static_cast<uint32_t>(p.num_outputs);
    p.num_outputs += static_cast<int32_t>(states.size());
    const NodePtr made = graph_.add(*node.op, ParamSchema<ForeachParams>::box(std::move(p)), std::move(inputs), &node,
                                    {freeze(body, outputs_with(body, states))});
    for (size_t i = 0; i < states.size(); ++i) write(states[i].number, {made, before + static_cast<uint32_t>(i)});
    replace(node, made, before, 0);
  }

  void lift_while(Node& node) {
    WhileLoopParams p = params_of<WhileLoopParams>(node);
    const Graph body = committed_body(node, 1);
    const std::vector<Lifted> states = lifted_states(node, body, body_sources(node, 1), to_ints(p.func_var_locs));
    if (states.empty()) return;
    for (const Lifted& state : states) p.func_var_locs.push_back(state.body_input);
    std::vector<NodeEntry> inputs;
    for (const NodeEntry& input : node.inputs) inputs.push_back(latest(input));
    const auto before = static_cast<uint32_t>(p.num_outputs);
    p.num_outputs += static_cast<int32_t>(states.size());
    const NodePtr made = graph_.add(*node.op, ParamSchema<WhileLoopParams>::box(std::move(p)), std::move(inputs), &node,
                                    {node.subgraphs[0], freeze(body, outputs_with(body, states))});
    for (size_t i = 0; i < states.size(); ++i) write(states[i].number, {made, before + static_cast<uint32_t>(i)});
    replace(node, made, before, static_cast<uint32_t>(states.size()));  // the count stays last
  }

  void lift_cond(Node& node) {
    CondParams p = params_of<CondParams>(node);
    Graph bodies[] = {committed_body(node, 1), committed_body(node, 2)};
    OptionalInts* const locs[] = {&p.then_input_locs, &p.else_input_locs};
    std::map<int, int> written;  // input of the node -> number of the state
    for (size_t b = 0; b < 2; ++b) {
      for (const Graph::Writeback& writeback : bodies[b].writebacks()) {
        const int source = to_ints(*locs[b])[static_cast<size_t>(writeback.input)];
        if (const int number = state_number(node.inputs[static_cast<size_t>(source)]); number >= 0)
          written[source] = number;
      }
    }
    if (written.empty()) return;
    std::vector<Ref<Subgraph>> subgraphs{node.subgraphs[0]};
    for (size_t b = 0; b < 2; ++b) subgraphs.push_back(with_states(node, bodies[b], *locs[b], written));
    std::vector<NodeEntry> inputs;
    for (const NodeEntry& input : node.inputs) inputs.push_back(latest(input));
    const auto before = static_cast<uint32_t>(p.num_outputs);
    p.num_outputs += static_cast<int32_t>(written.size());
    const NodePtr made = graph_.add(*node.op, ParamSchema<CondParams>::box(std::move(p)), std::move(inputs), &node,
                                    std::move(subgraphs));
    uint32_t output = before;
    for (const auto& [source, number] : written) write(number, {made, output++});
    replace(node, made, before, 0);
  }

  // A branch that leaves a state alone passes it through.
  Ref<Subgraph> with_states(const Node& node, Graph& body, OptionalInts& locs, const std::map<int, int>& written) {
    std::vector<NodeEntry> outputs = body.outputs();
    for (const auto& [source, number] : written) {
      NodeEntry value;
      for (const Graph::Writeback& writeback : body.writebacks())
        if (locs[static_cast<size_t>(writeback.input)] == source) value = writeback.value;
      if (!value.node) {
        const auto at = std::find(locs.begin(), locs.end(), std::optional<int64_t>(source));
        if (at != locs.end()) {
          value = {body.inputs()[static_cast<size_t>(at - locs.begin())], 0};
        } else {
          const NodeEntry& outer = node.inputs[static_cast<size_t>(source)];
          value = {body.add_input(outer.node->name, graph_.spec(outer)), 0};
          locs.push_back(source);
        }
      }
      outputs.push_back(value);
    }
    return freeze(body, outputs);
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
