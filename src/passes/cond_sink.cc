// Work that only one branch reads moves into that branch: it runs, forwards and backwards, only when the branch is
// taken.
#include <algorithm>
#include <unordered_set>

#include "graph/control_flow.h"
#include "passes/body_graph.h"
#include "passes/preparation.h"
#include "passes/register_all.h"

namespace hybridnet::passes {
namespace {

class Sink {
 public:
  Sink(Graph& graph, Node& node) : graph_(graph), node_(node) {
    reader_of_input_.assign(node.inputs.size(), 0);
    for (size_t body = 0; body < 3; ++body)
      for (int source : body_sources(node, body)) reader_of_input_[static_cast<size_t>(source)] |= 1 << body;
  }

  bool run() {
    for (size_t body = 1; body < 3; ++body) find_movable(body);
    if (moved_[1].empty() && moved_[2].empty()) return false;
    rebuild();
    return true;
  }

 private:
  bool is_pure(const Node& node) const {
    if (node.is_variable() || node.op->has_writebacks() || is_random(node) || has_effect(node) ||
        is_preparation(node) || node.op->data_dependent_shape || !node.control.empty())
      return false;
    auto plain = [this](const NodeEntry& entry) { return graph_.format(entry) == Format::kPlain; };
    for (uint32_t i = 0; i < node.specs.size(); ++i)
      if (!plain({NodePtr(const_cast<Node*>(&node)), i})) return false;
    return std::all_of(node.inputs.begin(), node.inputs.end(), plain);
  }

  // Is every reader in the branch, or moves there too?
  bool read_by_branch_only(const Node& node, size_t body) const {
    bool read = false;
    for (uint32_t i = 0; i < node.specs.size(); ++i) {
      for (const Client& client : graph_.clients(node, static_cast<int>(i))) {
        read = true;
        if (client.kind != Client::Kind::kNode) return false;
        if (client.node == &node_) {
          if (reader_of_input_[static_cast<size_t>(client.index)] != 1 << body) return false;
        } else if (moved_[body].count(client.node) == 0) {
          return false;
        }
      }
    }
    return read;
  }

  // Readers come first in reverse order, so whole cones move.
  void find_movable(size_t body) {
    std::vector<Node*> order = graph_.order();
    std::erase_if(order, [this](const Node* node) { return graph_.label(*node) >= graph_.label(node_); });
    for (auto it = order.rbegin(); it != order.rend(); ++it)
      if (is_pure(**it) && read_by_branch_only(**it, body)) moved_[body].insert(*it);
  }

  void rebuild() {
    CondParams p = params_of<CondParams>(node_);
    std::vector<NodeEntry> inputs;
    auto input_number = [&](const NodeEntry& entry) {
      const auto at = std::find(inputs.begin(), inputs.end(), entry);
      if (at != inputs.end()) return static_cast<int>(at - inputs.begin());
      inputs.push_back(entry);
      return static_cast<int>(inputs.size()) - 1;
    };
    p.cond_input_locs.clear();
    for (int source : body_sources(node_, 0))
      p.cond_input_locs.push_back(input_number(node_.inputs[static_cast<size_t>(source)]));
    std::vector<Ref<Subgraph>> bodies{node_.subgraphs[0]};
    for (size_t body = 1; body < 3; ++body) {
      std::vector<NodeEntry> outside;
      bodies.push_back(with_moved(body, outside));
      OptionalInts& locs = body == 1 ? p.then_input_locs : p.else_input_locs;
      locs.clear();
      for (const NodeEntry& entry : outside) locs.push_back(input_number(entry));
    }
    p.num_args = static_cast<int32_t>(inputs.size());
    const NodePtr made =
        graph_.add(*node_.op, ParamSchema<CondParams>::box(std::move(p)), std::move(inputs), &node_, std::move(bodies));
    made->attrs = node_.attrs;
    const NodePtr self(&node_);
    for (uint32_t i = 0; i < self->specs.size(); ++i)
      if (graph_.contains(self.get()) && graph_.is_used(*self, static_cast<int>(i)))
        graph_.replace({self, i}, {made, i});
  }

  // The branch with the moved nodes in front; outside: the value of each of its inputs.
  Ref<Subgraph> with_moved(size_t body, std::vector<NodeEntry>& outside) {
    std::vector<TensorSpec> specs;
    for (const NodeEntry& input : node_.inputs) specs.push_back(graph_.spec(input));
    const Graph old = body_graph(node_, body, body_input_specs(node_, body, specs), graph_.train());
    Graph fresh(graph_.train());
    EntryMap from_outside;
    auto outer_value = [&](const NodeEntry& entry) {
      if (const auto known = from_outside.find(entry); known != from_outside.end()) return known->second;
      outside.push_back(entry);
      return from_outside[entry] = {fresh.add_input(entry.node->name, graph_.spec(entry)), 0};
    };
    const std::vector<int> sources = body_sources(node_, body);
    std::vector<NodeEntry> wanted;
    for (int source : sources) wanted.push_back(node_.inputs[static_cast<size_t>(source)]);
    for (Node* node : graph_.order()) {
      if (moved_[body].count(node) == 0) continue;
      for (const NodeEntry& input : node->inputs)
        if (moved_[body].count(input.node.get()) == 0) outer_value(input);
    }
    for (const NodeEntry& entry : wanted)
      if (moved_[body].count(entry.node.get()) == 0) outer_value(entry);
    const std::vector<NodeEntry> values = fresh.import(graph_, wanted, from_outside);
    EntryMap inner;
    for (size_t i = 0; i < sources.size(); ++i) inner[{old.inputs()[i], 0}] = values[i];
    return freeze(fresh, fresh.import(old, old.outputs(), inner));
  }

  Graph& graph_;
  Node& node_;
  std::vector<int> reader_of_input_;  // bit b: body b reads it
  std::unordered_set<const Node*> moved_[3];
};

bool sink_into_branches(Graph& graph) {
  bool changed = false;
  std::vector<Node*> order = graph.order();
  for (auto it = order.rbegin(); it != order.rend(); ++it) {  // a branch of a branch: the outer one was sunk into first
    if (!graph.contains(*it) || control_kind(**it) != ControlKind::kCond) continue;
    changed = Sink(graph, **it).run() || changed;
  }
  return changed;
}

}  // namespace

void register_cond_sink(RewriteDatabase& db) {
  // Before differentiation, so that the backward work of what moves becomes conditional too; and once more for
  // gradients.
  db.pass("cond_sink", sink_into_branches).at(4.0).tags({"fast_run", "lazy"});
  db.pass("cond_sink_joint", sink_into_branches).at(35).tags({"fast_run", "lazy"});
}

}  // namespace hybridnet::passes
