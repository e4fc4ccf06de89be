// Removes outputs of loops and branches that nothing reads: stacked outputs cost memory in proportion to the number of
// iterations, states that only feed themselves cost their work in each iteration. A value that enters a branch twice
// enters it once.
#include <algorithm>
#include <unordered_set>

#include "graph/control/body_graph.h"
#include "graph/control/loop_view.h"
#include "passes/branches/cond_parts.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

using NodeSet = std::unordered_set<const Node*>;

// All nodes that the marked outputs of a body depend on, its inputs included.
NodeSet cone(const Subgraph& body, const std::vector<bool>& outputs) {
  std::vector<NodeEntry> roots;
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i]) roots.push_back(body.outputs[i]);
  const std::vector<Node*> nodes = topological_order(roots);
  return {nodes.begin(), nodes.end()};
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

// A loop must carry the states that are read behind it, those that its condition reads, and those that other kept
// values depend on.
bool trim_loop(Graph& graph, Node& node) {
  const LoopSpec& loop = loop_of(node);
  const Subgraph& body = *node.subgraphs.back();
  std::vector<bool> kept = read_outputs(graph, node, body.outputs.size());
  const bool is_counting = control_kind(node) == ControlKind::kWhileLoop;
  if (none(kept) && !(is_counting && graph.is_used(node, static_cast<int>(node.specs.size()) - 1)))
    return false;  // nothing reads the node: it goes as a whole
  const std::vector<bool> tested = is_counting ? read_inputs(*node.subgraphs[0]) : std::vector<bool>(loop.slots());
  for (size_t s = 0; s < loop.carries(); ++s)
    if (tested[loop.carry(s)]) kept[loop.final_carry(s)] = true;
  NodeSet needed;
  for (bool changed = true; changed;) {
    changed = false;
    needed = cone(body, kept);
    for (size_t s = 0; s < loop.carries(); ++s) {
      if (kept[loop.final_carry(s)] || needed.count(body.inputs[loop.carry(s)].get()) == 0) continue;
      kept[loop.final_carry(s)] = changed = true;
    }
  }
  if (none(kept)) return false;
  bool is_whole = all(kept);
  for (size_t k = 0; k < loop.slots(); ++k) {
    const bool is_carry = k >= loop.seqs() && k < loop.first_invariant();
    is_whole = is_whole && (is_carry || tested[k] || needed.count(body.inputs[k].get()) != 0);
  }
  if (is_whole || !LoopView::can_view(node)) return false;
  LoopView view(graph, node);
  std::erase_if(view.outs, [&](const LoopView::Out& out) { return !kept[static_cast<size_t>(out.output)]; });
  std::erase_if(view.carries, [&](const LoopView::Carry& carry) { return !kept[static_cast<size_t>(carry.output)]; });
  view.replace(graph, node, view.put_together(graph, node));
  return true;
}

bool trim_cond(Graph& graph, Node& node) {
  const BranchSpec& spec = branch_of(node);
  const std::vector<bool> outputs = read_outputs(graph, node, node.specs.size());
  if (none(outputs)) return false;
  BranchSpec trimmed = spec;
  trimmed.num_out = static_cast<int32_t>(std::count(outputs.begin(), outputs.begin() + spec.num_out, true));
  std::array<BoundBody, 3> bodies{bound_body(node, 0), bound_body(node, 1), bound_body(node, 2)};
  std::vector<NodeEntry> now(node.specs.size());
  for (size_t b = 0; b < 2; ++b) {
    auto body = make_ref<Subgraph>();
    body->inputs = node.subgraphs[b + 1]->inputs;
    for (size_t i = 0; i < spec.outputs_of(b); ++i)
      if (outputs[spec.output_of(b, i)]) body->outputs.push_back(node.subgraphs[b + 1]->outputs[i]);
    (b == 0 ? trimmed.then_extra : trimmed.else_extra) = static_cast<int32_t>(body->outputs.size() - trimmed.outs());
    bodies[b + 1].body = std::move(body);
  }
  bool has_unread = false;
  for (size_t k = 0; k < node.inputs.size(); ++k)
    has_unread = has_unread || std::none_of(bodies.begin(), bodies.end(), [&](const BoundBody& bound) -> bool {
                   return read_inputs(*bound.body)[k];
                 });
  if (all(outputs) && !has_unread) return false;
  const NodePtr made = add_cond(graph, node, trimmed, std::move(bodies));
  uint32_t next = 0;
  for (size_t i = 0; i < now.size(); ++i)
    if (outputs[i]) now[i] = {made, next++};
  move_readers(graph, node, now);
  return true;
}

bool has_twins(const std::vector<NodeEntry>& entries) {
  std::unordered_set<NodeEntry, NodeEntryHash> seen;
  return std::any_of(entries.begin(), entries.end(),
                     [&](const NodeEntry& entry) { return !seen.insert(entry).second; });
}

// Joins inputs of a branch that have the same value, so that equal work on them can be found.
bool share_branch_inputs(Graph& graph, Node& node) {
  if (!has_twins(node.inputs)) return false;
  std::array<BoundBody, 3> bodies{bound_body(node, 0), bound_body(node, 1), bound_body(node, 2)};
  bool changed = false;
  for (size_t b = 1; b < 3; ++b) {
    Graph body = graph_of_body(graph, node, b);
    changed = share_inputs(body, node.inputs) || changed;
    bodies[b].body = freeze(body, body.outputs());
  }
  if (!changed) return false;
  const NodePtr made = add_cond(graph, node, branch_of(node), std::move(bodies));
  std::vector<NodeEntry> now;
  for (uint32_t i = 0; i < node.specs.size(); ++i) now.push_back({made, i});
  move_readers(graph, node, now);
  return true;
}

}  // namespace

bool trim_control(Graph& graph) {
  bool changed = false;
  for_each_node(graph, {ControlKind::kCond},
                [&](Node& node) { changed = share_branch_inputs(graph, node) || changed; });
  // Readers first: nodes that lose their last reader can then be removed.
  for_each_node(
      graph, {ControlKind::kForeach, ControlKind::kWhileLoop, ControlKind::kCond},
      [&](Node& node) {
        const bool is_cond = control_kind(node) == ControlKind::kCond;
        changed = (is_cond ? trim_cond(graph, node) : trim_loop(graph, node)) || changed;
      },
      Walk::kReadersFirst);
  return changed;
}

}  // namespace hybridnet::passes
