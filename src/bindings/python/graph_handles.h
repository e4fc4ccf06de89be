// Handles through which Python sees a graph while it is rewritten. They live as long as the rule that got them, or as
// the mx.rewrite.Graph that owns the graph; using one later is an error.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "casters.h"
#include "graph/arithmetic.h"
#include "hybridnet/pass.h"

namespace hybridnet::python {

// What all handles of one graph share.
struct GraphAccess {
  Graph* graph = nullptr;  // null: over
  std::string given_to;    // the rule: for error texts
  NodePtr origin;          // the node that a local rule looks at; new nodes take its name, block, line
  std::unique_ptr<Graph> owned;
  std::vector<Graph::Checkpoint> checkpoints;           // that Python has taken and not released
  std::vector<std::shared_ptr<GraphFeature>> attached;  // from Python
  ~GraphAccess() { end(); }
  // The graph, for a use such as "Node.op"; throws ValueError when the rule is over.
  Graph& get(const char* use) const;
  void end();
};
using AccessPtr = std::shared_ptr<GraphAccess>;

struct GraphHandle {
  AccessPtr access;
};
struct NodeHandle {
  AccessPtr access;
  NodePtr node;
  bool operator==(const NodeHandle& o) const { return node.get() == o.node.get(); }
};
struct EntryHandle {
  AccessPtr access;
  NodeEntry entry;
  bool operator==(const EntryHandle& o) const { return entry == o.entry; }
};

// The access of a graph for as long as this lives.
class AccessScope {
 public:
  AccessScope(Graph& graph, std::string given_to, NodePtr origin = {});
  ~AccessScope() { access_->end(); }
  AccessScope(const AccessScope&) = delete;
  const AccessPtr& access() const { return access_; }

 private:
  AccessPtr access_;
};

// An entry, or a node of one output, of the graph behind `access`. Throws TypeError or ValueError naming `what`.
NodeEntry entry_from(const AccessPtr& access, const py::handle& object, const char* what);
// The same, or a number.
Operand operand_from(const AccessPtr& access, const py::handle& object, const char* what);
py::object operand_to(const AccessPtr& access, const Operand& operand);
// What a local rule gives back: None, an entry, a list with one per output, or a dict with "remove".
Replacement replacement_from(const AccessPtr& access, const Node& node, const py::object& result);

// A Python callable that C++ keeps; let go of under the GIL.
class KeptCallable {
 public:
  explicit KeptCallable(py::object object) : object_(std::move(object)) {}
  ~KeptCallable();
  KeptCallable(const KeptCallable&) = delete;
  const py::object& get() const { return object_; }

 private:
  py::object object_;
};

std::shared_ptr<const KeptCallable> kept_callable(const py::object& object);

// A graph that lives as long as handles of it.
GraphHandle owned_handle(Graph graph);

// The pass that hands convex sets of the nodes that supports(node) wants, as graphs, to make(graph); convex_sets_of
// finds the sets only.
GraphPass partition_pass(const std::string& name, const py::object& supports, const py::object& make, size_t min_nodes);
py::list convex_sets_of(const GraphHandle& handle, const py::object& supports);

// Runs Python code of a rule under the GIL: what it raises becomes an Error with the line that raised, but for
// KeyboardInterrupt and SystemExit, which end the compilation.
[[noreturn]] void rethrow_rule_error(py::error_already_set& error);
template <typename Function>
auto run_rule_code(Function&& function) {
  try {
    return function();
  } catch (py::error_already_set& error) {
    rethrow_rule_error(error);
  }
}

// Features of Python: any object with some of the methods of hybridnet.rewrite.Feature. They go with the access.
void attach_feature(const GraphHandle& handle, const py::object& object);
void detach_feature(const GraphHandle& handle, const py::object& object);
py::list attached_features(const GraphHandle& handle);

void bind_graph_handles(py::module_& m);
void bind_control_views(py::module_& m);
void bind_rewrites(py::module_& m);

}  // namespace hybridnet::python
