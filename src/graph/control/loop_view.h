// A loop or a branch taken apart: what feeds it from outside beside the input of the body that receives it, and the
// bodies as graphs. Passes edit both and put the node together again; nobody else numbers slots.
#pragma once

#include <array>
#include <optional>

#include "graph/control/control_flow.h"
#include "hybridnet/pass.h"

namespace hybridnet {

// A body of the node as a graph of its own: input k is slot k. Throws ShapeError when a spec in it stays unknown.
Graph graph_of_body(const Graph& graph, const Node& node, size_t body);

// Readers of the node's outputs read these entries instead; null entries are for outputs that nothing reads.
void move_readers(Graph& graph, Node& node, const std::vector<NodeEntry>& now);

// Calls `rewrite` for each loop or branch of these kinds that was in the graph at first and still is. Holds the nodes:
// a rewrite may free any of them, and a new node at the same address is another node.
enum class Walk : int8_t { kProducersFirst, kReadersFirst };
void for_each_node(Graph& graph, std::initializer_list<ControlKind> kinds, const std::function<void(Node&)>& rewrite,
                   Walk walk = Walk::kProducersFirst);

class LoopView {
 public:
  struct Slot {
    NodeEntry outer;
    NodePtr inner;   // input of the body; null: only the condition reads it
    NodePtr tested;  // input of the condition; null: it does not read it
  };
  struct Carry {
    Slot slot;
    int next = 0;    // output of the body
    int output = 0;  // of the node that was taken apart: the final value; -1: it had none
  };
  struct Out {
    int value = 0;   // output of the body
    int output = 0;  // of the node that was taken apart; -1: it had none
  };

  LoopView(const Graph& graph, const Node& node);
  // A new _foreach over so many rows: its slots and outputs are added by the caller.
  LoopView(Graph body, LoopSpec spec, int64_t rows) : spec(std::move(spec)), body(std::move(body)), rows_(rows) {}
  // False for nodes that are no loops, and for those whose shapes differ from run to run.
  static bool can_view(const Node& node);

  bool has_condition() const { return static_cast<bool>(condition); }
  int64_t rows() const { return rows_; }  // of a _foreach
  const NodeEntry& entry(int body_output) const { return body.outputs()[static_cast<size_t>(body_output)]; }
  // Output of the body that is this value; added if there is none.
  int output_of(const NodeEntry& value);
  void add_carry(const NodeEntry& init, const TensorSpec& spec, const std::string& name, const NodeEntry& next);
  const Slot& add_sequence(const NodeEntry& outer, const TensorSpec& slice, const std::string& name);
  const Slot& add_invariant(const NodeEntry& outer);
  // The slot of this kind that an entry of the body is; null: it is none.
  static const Slot* find(const std::vector<Slot>& slots, const NodeEntry& entry);

  // The loop as it is now, added to the graph as a node that nothing reads yet; it gets name, place and attributes of
  // `origin`. Slots that no body reads are left out.
  NodePtr put_together(Graph& graph, const Node& origin) const;
  // Outputs of that node.
  NodeEntry out(const NodePtr& made, size_t i) const { return {made, static_cast<uint32_t>(i)}; }
  NodeEntry final_carry(const NodePtr& made, size_t i) const { return {made, static_cast<uint32_t>(outs.size() + i)}; }
  // Readers of the node read `made` instead. `others`: per output of the node, what takes the place of those that are
  // no longer there.
  void replace(Graph& graph, Node& node, const NodePtr& made, const std::vector<NodeEntry>& others = {}) const;

  LoopSpec spec;  // put_together() fills in the numbers of slots and outputs
  Graph body;
  std::optional<Graph> condition;  // of loops with one; its output tells whether to go on
  std::vector<Slot> data, captured;
  std::vector<Carry> carries;
  std::vector<Out> outs;
  std::optional<NodeEntry> count;  // of iterations, or limit of this run, of counted loops

 private:
  int64_t rows_ = 0;
};

// Number of iterations of a _foreach (at most, for counted loops).
int64_t rows_of(const Graph& graph, const Node& node);

// Adds a _cond: predicate, then branch, else branch; outputs and origin as `like` has them, but for the numbers in
// spec.
NodePtr add_cond(Graph& graph, const Node& like, BranchSpec spec, std::array<BoundBody, 3> bodies);
// A predicate body that gives what it gets.
BoundBody predicate_of(const NodeEntry& value, const TensorSpec& spec);
// A body of a _cond and what its inputs get.
BoundBody bound_body(const Node& node, size_t body);

}  // namespace hybridnet
