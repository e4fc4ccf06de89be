// Work that only one branch reads moves into that branch: it runs, forwards and backwards, only when the branch is
// taken.
#include <algorithm>
#include <unordered_set>

#include "graph/control/body_graph.h"
#include "graph/control/loop_view.h"
#include "passes/branches/cond_parts.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

class Sink {
 public:
  Sink(Graph& graph, Node& node) : graph_(graph), node_(node), reader_of_input_(bodies_reading(node)) {}

  bool run() {
    for (size_t body = 1; body < 3; ++body) find_movable(body);
    if (moved_[1].empty() && moved_[2].empty()) return false;
    rebuild();
    return true;
  }

 private:
  // True if every reader is in the branch, or moves there, too.
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
      if (may_cross_branch_border(graph_, **it) && read_by_branch_only(**it, body)) moved_[body].insert(*it);
  }

  void rebuild() {
    const NodePtr made =
        add_cond(graph_, node_, branch_of(node_), {bound_body(node_, 0), with_moved(1), with_moved(2)});
    std::vector<NodeEntry> now;
    for (uint32_t i = 0; i < node_.specs.size(); ++i) now.push_back({made, i});
    move_readers(graph_, node_, now);
  }

  // The branch with the moved nodes in front.
  BoundBody with_moved(size_t body) {
    const Graph old = graph_of_body(graph_, node_, body);
    Graph fresh(graph_.train());
    std::vector<NodeEntry> outside;
    EntryMap from_outside;
    auto outer_value = [&](const NodeEntry& entry) {
      if (const auto known = from_outside.find(entry); known != from_outside.end()) return known->second;
      outside.push_back(entry);
      return from_outside[entry] = {fresh.add_input(entry.node->name, graph_.spec(entry)), 0};
    };
    for (Node* node : graph_.order()) {
      if (moved_[body].count(node) == 0) continue;
      for (const NodeEntry& input : node->inputs)
        if (moved_[body].count(input.node.get()) == 0) outer_value(input);
    }
    for (const NodeEntry& entry : node_.inputs)
      if (moved_[body].count(entry.node.get()) == 0) outer_value(entry);
    const std::vector<NodeEntry> values = fresh.import(graph_, wanted(body), from_outside);
    EntryMap inner;
    size_t next = 0;
    for (size_t k = 0; k < node_.inputs.size(); ++k)
      if ((reader_of_input_[k] >> body & 1) != 0) inner[{old.inputs()[k], 0}] = values[next++];
    return {freeze(fresh, fresh.import(old, old.outputs(), inner)), std::move(outside)};
  }

  // The values that the branch reads.
  std::vector<NodeEntry> wanted(size_t body) const {
    std::vector<NodeEntry> values;
    for (size_t k = 0; k < node_.inputs.size(); ++k)
      if ((reader_of_input_[k] >> body & 1) != 0) values.push_back(node_.inputs[k]);
    return values;
  }

  Graph& graph_;
  Node& node_;
  std::vector<int> reader_of_input_;  // bit b: body b reads it
  std::unordered_set<const Node*> moved_[3];
};

}  // namespace

bool cond_sink(Graph& graph) {
  bool changed = false;
  // A cond may move into a branch of another cond: that other cond comes first.
  for_each_node(
      graph, {ControlKind::kCond}, [&](Node& node) { changed = Sink(graph, node).run() || changed; },
      Walk::kReadersFirst);
  return changed;
}

}  // namespace hybridnet::passes
