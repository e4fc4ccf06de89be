// What a joint graph keeps of its forward run for the backward run, and what it takes to make a value again.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "passes/remat.h"

namespace hybridnet::passes {

using EntrySet = std::unordered_set<NodeEntry, NodeEntryHash>;
using NodeSet = std::unordered_set<const Node*>;

// What runs in place of a node that is run once more: the same, or what gives its first output from others that are
// kept anyway. BatchNorm finds no statistics again.
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

// Forward nodes are early, those that only gradients need are late. Views count as what they show.
class KeptValues {
 public:
  KeptValues(const Graph& graph, const RematScope::Settings& settings);

  bool is_late(const Node& node) const { return late_.count(&node) != 0; }
  const std::vector<Node*>& schedule() const { return schedule_; }
  NodeEntry shown_by(NodeEntry entry) const;  // through views
  // Does a late node read it, as it is now?
  bool is_read_late(const NodeEntry& entry) const { return read_late_.count(entry) != 0; }
  const std::vector<NodeEntry>& kept() const { return kept_; }  // early values that late nodes read; none is an input
  int64_t bytes_of(const NodeEntry& entry) const;               // 0: it lives anyway
  // Is it kept whatever reads it? In loops, operands of late products: these add up over stacked rows
  // (iteration_sums.h).
  bool is_fixed(const NodeEntry& entry) const { return fixed_.count(entry) != 0; }
  int64_t cost_of(const Node& node) const;
  int64_t cost_of_repeating(const Node& node) const;
  int64_t total_cost() const { return total_cost_; }
  bool is_body() const { return settings_.body.has_value(); }
  // May late nodes read this variable?
  bool is_readable(const Node& variable) const;
  // May the node be run once more? any: also one that does more than to pass over its input.
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
