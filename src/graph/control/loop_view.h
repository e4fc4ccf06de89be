// A loop or branch taken apart: pairs of outer value and body input, and the bodies as graphs. Passes edit both and put
// the node together again; only this class numbers slots.
#pragma once

#include <array>
#include <optional>

#include "graph/control/control_flow.h"
#include "hybridnet/pass.h"

namespace hybridnet {

// Returns a body of the node as a graph of its own: input k is slot k. Throws ShapeError if a spec in it stays unknown.
Graph graph_of_body(const Graph& graph, const Node& node, size_t body);

// Moves the readers of the node's outputs to these entries. Entries of outputs without readers may be null.
void move_readers(Graph& graph, Node& node, const std::vector<NodeEntry>& now);

// Calls `rewrite` for each loop or branch of these kinds that was in the graph at the start and still is. Keeps the
// nodes alive: a rewrite may remove any of them, and a new node must not get the address of an old one.
enum class Walk : int8_t { kProducersFirst, kReadersFirst };
void for_each_node(Graph& graph, std::initializer_list<ControlKind> kinds, const std::function<void(Node&)>& rewrite,
                   Walk walk = Walk::kProducersFirst);

class LoopView {
 public:
  struct Slot {
    NodeEntry outer;
    NodePtr inner;   // input of the body; null: only the condition reads it
    NodePtr tested;  // input of the condition; null: the condition does not read it
  };
  struct Carry {
    Slot slot;
    int next = 0;    // output of the body
    int output = 0;  // output of the original node with the final value; -1: none
  };
  struct Out {
    int value = 0;   // output of the body
    int output = 0;  // output of the original node; -1: none
  };

  LoopView(const Graph& graph, const Node& node);
  // A new _foreach over `rows` rows: the caller adds its slots and outputs.
  LoopView(Graph body, LoopSpec spec, int64_t rows) : spec(std::move(spec)), body(std::move(body)), rows_(rows) {}
  // False for nodes that are not loops, and for loops whose shapes differ from run to run.
  static bool can_view(const Node& node);

  bool has_condition() const { return static_cast<bool>(condition); }
  int64_t rows() const { return rows_; }  // number of iterations of a _foreach
  const NodeEntry& entry(int body_output) const { return body.outputs()[static_cast<size_t>(body_output)]; }
  // Returns the index of the body output that is this value; adds the output if there is none.
  int output_of(const NodeEntry& value);
  void add_carry(const NodeEntry& init, const TensorSpec& spec, const std::string& name, const NodeEntry& next);
  const Slot& add_sequence(const NodeEntry& outer, const TensorSpec& slice, const std::string& name);
  const Slot& add_invariant(const NodeEntry& outer);
  // Returns the slot in the list whose body input is this entry; null if there is none.
  static const Slot* find(const std::vector<Slot>& slots, const NodeEntry& entry);

  // Adds the edited loop to the graph as a node without readers, with name, source location and attributes of
  // `origin`. Slots that no body reads are left out.
  NodePtr put_together(Graph& graph, const Node& origin) const;
  // Outputs of the node that put_together() made.
  NodeEntry out(const NodePtr& made, size_t i) const { return {made, static_cast<uint32_t>(i)}; }
  NodeEntry final_carry(const NodePtr& made, size_t i) const { return {made, static_cast<uint32_t>(outs.size() + i)}; }
  // Moves the readers of `node` to `made`. `others`: per output of `node`, the replacement if `made` does not have the
  // output.
  void replace(Graph& graph, Node& node, const NodePtr& made, const std::vector<NodeEntry>& others = {}) const;

  LoopSpec spec;  // put_together() fills in the numbers of slots and outputs
  Graph body;
  std::optional<Graph> condition;  // only in loops with a condition; the loop continues while its output is true
  std::vector<Slot> data, captured;
  std::vector<Carry> carries;
  std::vector<Out> outs;
  std::optional<NodeEntry> count;  // only in counted loops: number of iterations, or limit of this run

 private:
  int64_t rows_ = 0;
};

// Returns the number of iterations of a _foreach (the maximum for counted loops).
int64_t rows_of(const Graph& graph, const Node& node);

// Adds a _cond with these bodies: predicate, then branch, else branch. Outputs and origin are copied from `like`, the
// numbers from `spec`.
NodePtr add_cond(Graph& graph, const Node& like, BranchSpec spec, std::array<BoundBody, 3> bodies);
// Returns a predicate body whose output is its input.
BoundBody predicate_of(const NodeEntry& value, const TensorSpec& spec);
// Returns a body of a _cond with the values for its inputs.
BoundBody bound_body(const Node& node, size_t body);

}  // namespace hybridnet
