// Gradients that arrive at a state of a loop in some iterations only. The last value of a state that nothing reads has
// no gradient, which is not the same as zeros: 0 * inf is NaN, while an absent gradient stays absent.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "graph/control/loop_view.h"

namespace hybridnet {

class AbsentGradients {
 public:
  // A carry of the backward loop: the gradient of a state.
  struct State {
    NodePtr head;                     // input of the backward body; null: nothing reads it there
    NodeEntry next;                   // gradient for the next iteration; null: zeros
    bool arrives = false;             // a gradient arrives at the first iteration
    NodeEntry arrived = {};           // it arrives only if this is not zeros (an outer loop may have had none); or null
    std::optional<NodeEntry> flag{};  // result: input of the body, 1 if the gradient arrives, else 0
  };

  // heads: other inputs of the backward body at which gradients arrive, in each iteration. is_cut: carries may be cut
  // off between any two iterations.
  AbsentGradients(Graph& body, std::vector<State> states, const std::vector<NodePtr>& heads, bool is_cut);

  // If a gradient is absent, the values computed from it count as zeros, as soon as they meet other gradients or are
  // results. results: gradients that the body returns; those that may be absent are replaced by masked ones.
  void mask(std::vector<NodeEntry>& results);
  const std::vector<State>& states() const { return states_; }
  // The flag of a state in the next iteration. The state must have a flag.
  NodeEntry next_flag(size_t state);

 private:
  // The gradients that reach a value: one of every iteration, or those of these states only.
  struct Arrival {
    bool always = false;
    std::vector<bool> states;
    bool any() const;
    void merge(const Arrival& other);
  };
  Arrival nothing() const { return {false, std::vector<bool>(states_.size())}; }
  void find_arrivals();
  const Arrival* arrival_of(const NodeEntry& entry) const;
  void add_flags(const Arrival& arrival);
  NodeEntry flag_of(const Arrival& arrival);
  bool may_be_wrong(const NodeEntry& entry);
  NodeEntry masked(const NodeEntry& value);

  Graph& body_;
  std::vector<State> states_;
  const std::vector<NodePtr>& heads_;
  std::vector<bool> always_;  // states whose gradient arrives in each iteration
  std::unordered_map<const Node*, Arrival> arrivals_;
  std::unordered_map<NodeEntry, NodeEntry, NodeEntryHash> masked_;
  std::unordered_map<const Node*, bool> may_be_wrong_;  // cached answers
};

// Returns the value if the flag, an array of shape (1,), is not 0, and zeros otherwise.
NodeEntry kept_where(Graph& graph, const NodeEntry& flag, const NodeEntry& value);

}  // namespace hybridnet
