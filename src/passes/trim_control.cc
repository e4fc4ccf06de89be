// Outputs of loops and branches that nobody reads are not computed: stacked outputs cost memory in proportion to the
// number of iterations, states that only feed themselves cost their work in each of them. What enters a branch twice
// enters it once.
#include <algorithm>
#include <unordered_set>

#include "graph/control/body_graph.h"
#include "graph/control/control_flow.h"
#include "passes/branches/cond_parts.h"
#include "passes/register_all.h"

namespace hybridnet::passes {
namespace {

using NodeSet = std::unordered_set<const Node*>;

// Everything the marked outputs of a body depend on, its inputs included.
NodeSet cone(const Subgraph& body, const std::vector<bool>& outputs) {
  std::vector<NodeEntry> roots;
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i]) roots.push_back(body.outputs[i]);
  const std::vector<Node*> nodes = topological_order(roots);
  return {nodes.begin(), nodes.end()};
}

// The body with the marked outputs and inputs only. Inputs that go are read by nothing that stays.
Ref<Subgraph> trimmed(const Subgraph& body, const std::vector<bool>& outputs, const std::vector<bool>& inputs) {
  auto result = make_ref<Subgraph>();
  for (size_t i = 0; i < body.outputs.size(); ++i)
    if (outputs[i]) result->outputs.push_back(body.outputs[i]);
  for (size_t i = 0; i < body.inputs.size(); ++i)
    if (inputs[i]) result->inputs.push_back(body.inputs[i]);
  return result;
}

// New numbers of what stays: position of each input of the body, -1 for those that go.
std::vector<int64_t> renumbered(const std::vector<bool>& kept) {
  std::vector<int64_t> numbers;
  int64_t next = 0;
  for (bool keep : kept) numbers.push_back(keep ? next++ : -1);
  return numbers;
}

void replace_outputs(Graph& graph, Node& node, const NodePtr& made, const std::vector<bool>& kept) {
  made->attrs = node.attrs;
  const NodePtr self(&node);
  const std::vector<int64_t> numbers = renumbered(kept);
  for (uint32_t i = 0; i < self->specs.size(); ++i) {
    if (!graph.contains(self.get())) break;
    const int64_t now =
        i < numbers.size() ? numbers[i] : static_cast<int64_t>(made->specs.size()) - 1;  // a loop's count
    if (graph.is_used(*self, static_cast<int>(i))) graph.replace({self, i}, {made, static_cast<uint32_t>(now)});
  }
}

// Which states a loop must carry: those whose final value is read, and those that something kept depends on.
// kept: per output of the body; outputs that are read on entry.
void close_over_states(const Subgraph& body, const std::vector<int>& state_inputs, size_t first_state,
                       const std::vector<bool>& always, std::vector<bool>& kept) {
  for (size_t s = 0; s < state_inputs.size(); ++s) kept[first_state + s] = kept[first_state + s] || always[s];
  for (bool changed = true; changed;) {
    changed = false;
    const NodeSet needed = cone(body, kept);
    for (size_t s = 0; s < state_inputs.size(); ++s) {
      const Node* slot = body.inputs[static_cast<size_t>(state_inputs[s])].get();
      if (kept[first_state + s] || needed.count(slot) == 0) continue;
      kept[first_state + s] = changed = true;
    }
  }
}

std::vector<bool> read_outputs(const Graph& graph, const Node& node, size_t count) {
  std::vector<bool> read;
  for (size_t i = 0; i < count; ++i) read.push_back(graph.is_used(node, static_cast<int>(i)));
  return read;
}

bool all(const std::vector<bool>& flags) {
  return std::all_of(flags.begin(), flags.end(), [](bool f) { return f; });
}
bool none(const std::vector<bool>& flags) {
  return std::none_of(flags.begin(), flags.end(), [](bool f) { return f; });
}

bool trim_foreach(Graph& graph, Node& node) {
  ForeachParams p = params_of<ForeachParams>(node);
  const Subgraph& body = *node.subgraphs[0];
  const std::vector<int> states = to_ints(p.in_state_locs), sources = body_sources(node, 0);
  const auto num_out_data = static_cast<size_t>(p.num_out_data);
  std::vector<bool> outputs = read_outputs(graph, node, body.outputs.size());
  close_over_states(body, states, num_out_data, std::vector<bool>(states.size()), outputs);
  if (none(outputs)) return false;  // nothing reads the node: it goes as a whole
  const NodeSet needed = cone(body, outputs);
  std::vector<bool> inputs;
  for (const NodePtr& input : body.inputs) inputs.push_back(needed.count(input.get()) != 0);
  for (size_t s = 0; s < states.size(); ++s) inputs[static_cast<size_t>(states[s])] = outputs[num_out_data + s];
  if (all(outputs) && all(inputs)) return false;

  const int64_t rows = p.in_data_locs.empty() ? p.length : graph.spec(node.inputs[0]).shape[0];
  const std::vector<int64_t> numbers = renumbered(inputs);
  std::vector<NodeEntry> node_inputs;
  for (OptionalInts* list : {&p.in_data_locs, &p.in_state_locs, &p.remain_locs}) {
    OptionalInts locs;
    for (int at : to_ints(*list)) {
      if (!inputs[static_cast<size_t>(at)]) continue;
      locs.push_back(numbers[static_cast<size_t>(at)]);
      node_inputs.push_back(node.inputs[static_cast<size_t>(sources[static_cast<size_t>(at)])]);
    }
    *list = std::move(locs);
  }
  if (p.in_data_locs.empty()) p.length = rows;  // the data that told it has gone
  if (p.counted) node_inputs.push_back(node.inputs.back());
  p.num_args = static_cast<int32_t>(node_inputs.size());
  p.num_out_data =
      static_cast<int32_t>(std::count(outputs.begin(), outputs.begin() + static_cast<long>(num_out_data), true));
  p.num_outputs = static_cast<int32_t>(std::count(outputs.begin(), outputs.end(), true));
  const NodePtr made = graph.add(*node.op, ParamSchema<ForeachParams>::box(std::move(p)), std::move(node_inputs), &node,
                                 {trimmed(body, outputs, inputs)});
  replace_outputs(graph, node, made, outputs);
  return true;
}

// States that the condition reads stay; so do all inputs, whose numbers both bodies share.
bool trim_while_loop(Graph& graph, Node& node) {
  WhileLoopParams p = params_of<WhileLoopParams>(node);
  const Subgraph& body = *node.subgraphs[1];
  const std::vector<int> states = to_ints(p.func_var_locs), sources = body_sources(node, 1),
                         tested = body_sources(node, 0);
  const auto num_out_data = static_cast<size_t>(p.num_out_data);
  std::vector<bool> outputs = read_outputs(graph, node, body.outputs.size()), always;
  for (int state : states)
    always.push_back(std::find(tested.begin(), tested.end(), sources[static_cast<size_t>(state)]) != tested.end());
  if (none(outputs) && !graph.is_used(node, static_cast<int>(node.specs.size()) - 1)) return false;
  close_over_states(body, states, num_out_data, always, outputs);
  if (all(outputs) || none(outputs)) return false;
  // A dropped state becomes a captured value that nothing kept reads.
  OptionalInts variables;
  for (size_t s = 0; s < states.size(); ++s)
    if (outputs[num_out_data + s]) variables.push_back(states[s]);
  p.func_var_locs = std::move(variables);
  p.num_out_data =
      static_cast<int32_t>(std::count(outputs.begin(), outputs.begin() + static_cast<long>(num_out_data), true));
  p.num_outputs = static_cast<int32_t>(std::count(outputs.begin(), outputs.end(), true));
  const NodePtr made =
      graph.add(*node.op, ParamSchema<WhileLoopParams>::box(std::move(p)), node.inputs, &node,
                {node.subgraphs[0], trimmed(body, outputs, std::vector<bool>(body.inputs.size(), true))});
  replace_outputs(graph, node, made, outputs);
  return true;
}

bool trim_cond(Graph& graph, Node& node) {
  CondParams p = params_of<CondParams>(node);
  const std::vector<bool> outputs = read_outputs(graph, node, static_cast<size_t>(p.num_outputs));
  if (none(outputs)) return false;
  const auto common = static_cast<long>(p.num_outputs - p.then_extra - p.else_extra);
  const auto first = outputs.begin();
  // Outputs of the node by branch: those of both, then those of this one.
  std::vector<bool> of_branch[2];
  for (auto& flags : of_branch) flags.assign(first, first + common);
  of_branch[0].insert(of_branch[0].end(), first + common, first + common + p.then_extra);
  of_branch[1].insert(of_branch[1].end(), first + common + p.then_extra, outputs.end());
  std::vector<Ref<Subgraph>> bodies{node.subgraphs[0]};
  bool changed = false;
  for (size_t b = 0; b < 2; ++b) {
    const Subgraph& body = *node.subgraphs[b + 1];
    const NodeSet needed = cone(body, of_branch[b]);
    std::vector<bool> inputs;
    for (const NodePtr& input : body.inputs) inputs.push_back(needed.count(input.get()) != 0);
    changed = changed || !all(of_branch[b]) || !all(inputs);
    bodies.push_back(trimmed(body, of_branch[b], inputs));
    OptionalInts& locs = b == 0 ? p.then_input_locs : p.else_input_locs;
    OptionalInts kept;
    for (size_t k = 0; k < locs.size(); ++k)
      if (inputs[k]) kept.push_back(locs[k]);
    locs = std::move(kept);
  }
  if (!changed) return false;
  p.num_outputs = static_cast<int32_t>(std::count(outputs.begin(), outputs.end(), true));
  p.then_extra = static_cast<int32_t>(std::count(of_branch[0].begin() + common, of_branch[0].end(), true));
  p.else_extra = static_cast<int32_t>(std::count(of_branch[1].begin() + common, of_branch[1].end(), true));
  // Inputs of the node that no body reads go.
  std::vector<bool> used(node.inputs.size());
  OptionalInts* const lists[] = {&p.cond_input_locs, &p.then_input_locs, &p.else_input_locs};
  for (const OptionalInts* list : lists)
    for (int at : to_ints(*list)) used[static_cast<size_t>(at)] = true;
  const std::vector<int64_t> numbers = renumbered(used);
  std::vector<NodeEntry> inputs;
  for (size_t i = 0; i < used.size(); ++i)
    if (used[i]) inputs.push_back(node.inputs[i]);
  for (OptionalInts* list : lists)
    for (std::optional<int64_t>& at : *list) at = numbers[static_cast<size_t>(*at)];
  p.num_args = static_cast<int32_t>(inputs.size());
  const NodePtr made =
      graph.add(*node.op, ParamSchema<CondParams>::box(std::move(p)), std::move(inputs), &node, std::move(bodies));
  replace_outputs(graph, node, made, outputs);
  return true;
}

bool has_twins(const std::vector<NodeEntry>& entries) {
  std::unordered_set<NodeEntry, NodeEntryHash> seen;
  return std::any_of(entries.begin(), entries.end(),
                     [&](const NodeEntry& entry) { return !seen.insert(entry).second; });
}

// Inputs of a branch that get the same value become one, so that equal work on them can be found.
bool share_branch_inputs(Graph& graph, Node& node) {
  std::array<CondBranch, 2> branches;
  bool changed = false;
  for (size_t b = 0; b < 2; ++b) {
    for (int source : body_sources(node, b + 1))
      branches[b].outside.push_back(node.inputs[static_cast<size_t>(source)]);
    branches[b].body = node.subgraphs[b + 1];
    if (!has_twins(branches[b].outside)) continue;
    Graph body = branch_graph(graph, node, b + 1);
    changed = share_inputs(body, branches[b].outside) || changed;
    branches[b].body = freeze(body, body.outputs());
  }
  if (!changed) return false;
  const NodePtr self(&node), made = add_cond(graph, node, params_of<CondParams>(node), std::move(branches));
  replace_outputs(graph, *self, made, std::vector<bool>(self->specs.size(), true));
  return true;
}

bool trim(Graph& graph) {
  bool changed = false;
  for (Node* node : graph.order())
    if (graph.contains(node) && control_kind(*node) == ControlKind::kCond)
      changed = share_branch_inputs(graph, *node) || changed;
  const std::vector<Node*> order = graph.order();
  for (auto it = order.rbegin(); it != order.rend(); ++it) {  // readers first: what they no longer read can go
    if (!graph.contains(*it)) continue;
    Node& node = **it;
    switch (control_kind(node)) {
      case ControlKind::kForeach:
        changed = trim_foreach(graph, node) || changed;
        break;
      case ControlKind::kWhileLoop:
        changed = trim_while_loop(graph, node) || changed;
        break;
      case ControlKind::kCond:
        changed = trim_cond(graph, node) || changed;
        break;
      case ControlKind::kNone:
        break;
    }
  }
  return changed;
}

}  // namespace

void register_trim_control(RewriteDatabase& db) {
  db.pass("trim_control", trim).at(0.4).tags({"fast_compile", "fast_run", "loop"});
  db.pass("trim_control_joint", trim).at(34).tags({"fast_compile", "fast_run", "loop"});
}

}  // namespace hybridnet::passes
