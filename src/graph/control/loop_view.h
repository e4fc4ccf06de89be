// A loop taken apart: what feeds it from outside beside the input of the body that receives it, and the body as a
// graph. Passes edit both and put the loop together again.
#pragma once

#include <optional>

#include "graph/control/control_flow.h"
#include "hybridnet/pass.h"

namespace hybridnet {

class LoopView {
 public:
  struct Slot {
    NodeEntry outer;
    NodePtr inner;   // input of the body; null: only the condition reads it
    NodePtr tested;  // input of the condition; null: it does not read it
  };
  struct State {
    Slot slot;
    int next = 0;    // output of the body
    int output = 0;  // of the node that was taken apart: the final state; -1: it had none
  };
  struct Out {
    int value = 0;   // output of the body
    int output = 0;  // of the node that was taken apart; -1: it had none
  };

  LoopView(const Graph& graph, const Node& node);
  // False for nodes that are no loops, for those whose shapes differ from run to run, and for those that feed several
  // inputs of a body from one.
  static bool can_view(const Node& node);

  bool has_condition() const { return static_cast<bool>(condition); }
  int64_t rows() const { return rows_; }
  const NodeEntry& entry(int body_output) const { return body.outputs()[static_cast<size_t>(body_output)]; }
  // Output of the body that is this value; added if there is none.
  int output_of(const NodeEntry& value);
  // State that starts from `init`.
  void add_state(const NodeEntry& init, const TensorSpec& spec, const std::string& name, const NodeEntry& next);

  // The loop as it is now, added to the graph as a node that nothing reads yet. Nothing may be edited afterwards.
  NodePtr put_together(Graph& graph, const Node& node);
  // Outputs of that node.
  int output_of_out(size_t out) const { return static_cast<int>(out); }
  int output_of_state(size_t state) const { return static_cast<int>(outs.size() + state); }
  // Readers of the node read `made` instead. `others`: per output of the node, what takes the place of those that are
  // no longer there.
  void replace(Graph& graph, Node& node, const NodePtr& made, const std::vector<NodeEntry>& others);

  Graph body;
  std::optional<Graph> condition;  // of loops with one; its output tells whether to go on
  std::vector<Slot> data, captured;
  std::vector<State> states;
  std::vector<Out> outs;
  std::optional<NodeEntry> count;  // of iterations, or limit of this run, of loops that are told when they run

 private:
  void take_foreach(const Node& node);
  void take_while(const Node& node);
  std::vector<NodeEntry> body_outputs() const;
  NodePtr put_foreach(Graph& graph, const Node& node);
  NodePtr put_while(Graph& graph, const Node& node);

  ParamsPtr params_;
  int64_t rows_ = 0;
};

// Number of iterations of a loop over data (at most, for counted loops).
int64_t rows_of(const Graph& graph, const Node& node);

}  // namespace hybridnet
