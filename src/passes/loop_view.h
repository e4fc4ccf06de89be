// A loop over data taken apart: what feeds it from outside beside the input of the body that receives it, and the body
// as a graph. Passes edit both and put the loop together again.
#pragma once

#include <optional>

#include "graph/control_flow.h"
#include "hybridnet/pass.h"

namespace hybridnet {

class LoopView {
 public:
  struct Slot {
    NodeEntry outer;
    NodePtr inner;
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

  ForeachParams params;
  Graph body;
  std::vector<Slot> data, captured;
  std::vector<State> states;
  std::vector<Out> outs;
  std::optional<NodeEntry> count;  // of iterations, of loops that are told when they run

 private:
  int64_t rows_ = 0;
};

// Number of iterations of a loop over data (at most, for counted loops).
int64_t rows_of(const Graph& graph, const Node& node);

}  // namespace hybridnet
