// The immutable parts of graphs: Node, NodeEntry, Subgraph, Symbol. Rewrites work on a Graph (mutable_graph.h).
// Owner:   symbols and callables hold nodes by reference counting; a node holds its producers.
// Threads: any thread may read what a Symbol reaches. Node::attrs and Node::specs have no lock: they change only on the
//          thread that builds or traces the graph.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "hybridnet/op.h"

namespace hybridnet {

class Node;
using NodePtr = Ref<Node>;

// One output of a node.
struct NodeEntry {
  NodePtr node;
  uint32_t index = 0;
  bool operator==(const NodeEntry& o) const { return node.get() == o.node.get() && index == o.index; }
};
struct NodeEntryHash {
  size_t operator()(const NodeEntry& e) const { return std::hash<const void*>()(e.node.get()) * 31 + e.index; }
};

// A closed, frozen graph held by a control-flow node: every leaf is one of `inputs` or a constant.
struct Subgraph : RefCounted<Subgraph> {
  std::vector<NodePtr> inputs;  // variables, in slot order
  std::vector<NodeEntry> outputs;
};

using AttrDict = std::map<std::string, std::string>;

// A use of an op, or a variable (op == nullptr). Immutable once reachable from a Symbol, except `attrs` through
// Symbol::set_attr, as in MXNet.
class Node final : public Object {
 public:
  ~Node() override;  // iterative: chains of 10^6 nodes do not overflow the stack
  const Op* op = nullptr;
  std::string name;
  ParamsPtr params;  // never null for ops
  AttrDict attrs;    // user and hidden attributes (__shape__, __init__, ...), not the op's parameters
  std::vector<NodeEntry> inputs;
  std::vector<NodePtr> control;
  std::vector<Ref<Subgraph>> subgraphs;
  SourceLocation where;
  std::string block;  // path of the block that traced it
  // The known specs of the outputs while a block is traced: set when the node is made (Op::infer runs at once, so a
  // wrong shape is reported at the user's line), refined backwards into variables (deferred parameters). Empty outside
  // traces.
  mutable std::vector<TensorSpec> specs;
  Ref<Object> constant;  // variable with a value known at build time: an ArrayImpl (constant folding, literals)
  bool is_variable() const { return op == nullptr; }
  int num_outputs() const { return op ? op->num_outputs(params->data()) : 1; }
  int num_visible_outputs() const { return op ? op->num_visible_outputs(params->data()) : 1; }
};
NodePtr make_variable(std::string name);
NodePtr make_node(const Op& op, std::string name, ParamsPtr params, std::vector<NodeEntry> inputs);
// A copy of the node (or variable) that reads `inputs`. The caller sets the members that depend on the position of the
// node: specs, and control producers.
NodePtr copy_of(const Node& node, std::vector<NodeEntry> inputs);

inline Value to_value(const NodeEntry& e) { return e.node ? Value{Ref<Object>(e.node.get()), e.index} : Value{}; }
inline NodeEntry to_entry(const Value& v) {
  return v ? NodeEntry{NodePtr(static_cast<Node*>(v.object.get())), v.index} : NodeEntry{};
}

// Depth-first post-order from outputs, inputs left to right, each node once. Iterative. Throws Error on a cycle.
std::vector<Node*> topological_order(const std::vector<NodeEntry>& outputs);

// An immutable list of entries with the queries of users.
// Throws: from_json() throws FormatError; infer() throws ShapeError or DTypeError with the node; functions that walk
//         the graph throw Error if it has a cycle.
class Symbol {
 public:
  std::vector<NodeEntry> outputs;

  std::vector<NodePtr> list_inputs() const;  // all variables, in walk order
  std::vector<std::string> list_arguments() const;
  std::vector<std::string> list_auxiliary_states() const;
  std::vector<std::string> list_outputs() const;  // "fc_output", "bn_output0", variable: its name
  Symbol internals() const;                       // every output of every node
  Symbol children() const;
  std::string tojson() const;
  static Symbol from_json(std::string_view text,
                          const std::string& what);  // FormatError with position; unknown op, bad index, ...
  std::string text() const;                          // graph dump: one line per node with specs when known

  struct Specs {
    bool complete = false;
    std::vector<TensorSpec> arguments, auxiliaries, outputs;  // parallel to the lists above
  };
  // known: by argument name. partial: incomplete results are returned instead of thrown.
  Specs infer(const std::map<std::string, TensorSpec>& known, bool partial, bool train = false) const;
};

// Specs of every entry of the nodes reachable from outputs.
// Owner:   the inference or pass that fills it; it keeps the nodes alive.
// Threads: one at a time.
class SpecMap {
 public:
  TensorSpec& operator[](const NodeEntry& e);
  const TensorSpec& at(const NodeEntry& e) const;  // throws if absent
  bool has(const NodeEntry& e) const;

 private:
  std::unordered_map<NodeEntry, TensorSpec, NodeEntryHash> specs_;
};

// The spec that a variable declares in its attributes (__shape__, __dtype__).
TensorSpec declared_spec(const Node& variable);

// Inference over a whole graph, both ways, to a fixpoint. Returns true if every spec is known. Throws ShapeError,
// DTypeError and the errors of rules with op, node, block, input, and the Python line.
bool infer_specs(const std::vector<NodeEntry>& outputs, SpecMap& specs, bool train);

}  // namespace hybridnet
