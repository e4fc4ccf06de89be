// Finds the values that a joint graph keeps of its forward run for the backward run, and the cost of computing a value
// again.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "passes/gradient/remat.h"

namespace hybridnet::passes {

using EntrySet = std::unordered_set<NodeEntry, NodeEntryHash>;
using NodeSet = std::unordered_set<const Node*>;

// The operator that runs in place of a repeated node: the same one, or one that computes its first output from other
// outputs that are kept anyway. BatchNorm does not compute its statistics again.
struct Repetition {
  const Op* op;
  ParamsPtr params;
  std::vector<NodeEntry> inputs;
};
Repetition repetition_of(const Node& node);
bool repeats_first_output_only(const Node& node);
inline bool is_given_again(const NodeEntry& entry) {
  return entry.index == 0 || !repeats_first_output_only(*entry.node);
}

// Forward nodes are early, nodes that only gradients need are late. A view counts as the value under it.
class KeptValues {
 public:
  KeptValues(const Graph& graph, const RematScope::Settings& settings);

  bool is_late(const Node& node) const { return late_.count(&node) != 0; }
  const std::vector<Node*>& schedule() const { return schedule_; }
  NodeEntry shown_by(NodeEntry entry) const;  // the value under the views
  // True if a late node reads the entry in the present graph.
  bool is_read_late(const NodeEntry& entry) const { return read_late_.count(entry) != 0; }
  const std::vector<NodeEntry>& kept() const { return kept_; }  // early values that late nodes read; none is an input
  int64_t bytes_of(const NodeEntry& entry) const;               // 0: it is kept anyway
  // True if the entry is kept whatever reads it: in loops, operands of late products, which add up over stacked rows
  // (iteration_sums.h).
  bool is_fixed(const NodeEntry& entry) const { return fixed_.count(entry) != 0; }
  int64_t cost_of(const Node& node) const;
  int64_t cost_of_repeating(const Node& node) const;
  int64_t total_cost() const { return total_cost_; }
  bool is_body() const { return settings_.body.has_value(); }
  // True if late nodes may read this variable.
  bool is_readable(const Node& variable) const;
  // True if the node may be run once more. any: also nodes that do more than pass over their input.
  bool is_repeatable(const Node& node, bool any) const;

 private:
  void find_late();
  void find_living();

  const Graph& graph_;
  const RematScope::Settings& settings_;
  const std::vector<Node*> schedule_;
  NodeSet late_;
  EntrySet read_late_, living_, fixed_;
  std::vector<NodeEntry> kept_;
  int64_t total_cost_ = 0;
};

}  // namespace hybridnet::passes
