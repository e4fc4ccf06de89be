// Gradients that arrive at a state of a loop in some iterations only: at the last value of a state that nothing reads
// none arrives, which is not the same as zeros. 0 * inf is NaN, no gradient is none.
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
    NodeEntry next;                   // what the next iteration gets; null: zeros
    bool arrives = false;             // at the first iteration
    NodeEntry arrived = {};           // only if this is not zeros: the loop around may have had none; null otherwise
    std::optional<NodeEntry> flag{};  // result: input of the body that is 1 where the gradient arrives, else 0
  };

  // heads: other inputs of the backward body at which gradients arrive, in each iteration. is_cut: carries may be cut
  // off between any two iterations.
  AbsentGradients(Graph& body, std::vector<State> states, const std::vector<NodePtr>& heads, bool is_cut);

  // Where one is absent, what was computed from it counts as zeros, as soon as it meets other gradients or is a result.
  // results: gradients that the body gives; those that may be absent are exchanged for what counts.
  void mask(std::vector<NodeEntry>& results);
  const std::vector<State>& states() const { return states_; }
  // The flag of a state in the next iteration, of states that have one.
  NodeEntry next_flag(size_t state);

 private:
  // Which gradients reach a value: one of every iteration, or those of these states only.
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
  std::unordered_map<const Node*, bool> may_be_wrong_;  // as far as asked
};

// The value where the flag, an array of shape (1,), is not 0, and zeros elsewhere.
NodeEntry kept_where(Graph& graph, const NodeEntry& flag, const NodeEntry& value);

}  // namespace hybridnet
