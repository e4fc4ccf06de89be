// Handles with which Python reads and edits a graph during rewriting. They are valid as long as the rule that received
// them runs, or as the mx.rewrite.Graph that owns the graph lives; using one later is an error.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "casters.h"
#include "graph/arithmetic.h"
#include "hybridnet/pass.h"

namespace hybridnet::python {

// State that all handles of one graph share.
struct GraphAccess {
  Graph* graph = nullptr;  // null: the access has ended
  std::string given_to;    // the rule, for error texts
  NodePtr origin;          // the node at which a local rule is called; new nodes take its name, block, line
  std::unique_ptr<Graph> owned;
  std::vector<Graph::Checkpoint> checkpoints;           // taken by Python and not yet released
  std::vector<std::shared_ptr<GraphFeature>> attached;  // by Python
  ~GraphAccess() { end(); }
  // Returns the graph. Throws ValueError, which names the use ("Node.op"), after the access has ended.
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

// Makes an access of a graph and ends it at the end of the scope.
class AccessScope {
 public:
  AccessScope(Graph& graph, std::string given_to, NodePtr origin = {});
  ~AccessScope() { access_->end(); }
  AccessScope(const AccessScope&) = delete;
  const AccessPtr& access() const { return access_; }

 private:
  AccessPtr access_;
};

// Returns the entry in `object`: an Entry, or a Node with one output, of the graph behind `access`. Throws TypeError or
// ValueError naming `what`.
NodeEntry entry_from(const AccessPtr& access, const py::handle& object, const char* what);
// The same, but a number is allowed, too.
Operand operand_from(const AccessPtr& access, const py::handle& object, const char* what);
py::object operand_to(const AccessPtr& access, const Operand& operand);
// Converts the result of a local rule: None, an entry, a list with one per output, or a dict with "remove".
Replacement replacement_from(const AccessPtr& access, const Node& node, const py::object& result);

// A Python callable kept by C++; released under the GIL.
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

// Returns a handle of a graph that lives as long as its handles.
GraphHandle owned_handle(Graph graph);

// Returns the pass that passes convex sets of nodes for which supports(node) is true, as graphs, to make(graph);
// convex_sets_of() only finds the sets.
GraphPass partition_pass(const std::string& name, const py::object& supports, const py::object& make, size_t min_nodes);
py::list convex_sets_of(const GraphHandle& handle, const py::object& supports);

// Runs Python code of a rule under the GIL. An exception becomes an Error with the line that raised it, except
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

// Python features: objects with some of the methods of hybridnet.rewrite.Feature. They are detached when the access
// ends.
void attach_feature(const GraphHandle& handle, const py::object& object);
void detach_feature(const GraphHandle& handle, const py::object& object);
py::list attached_features(const GraphHandle& handle);

void bind_graph_handles(py::module_& m);
void bind_control_views(py::module_& m);
void bind_rewrites(py::module_& m);

}  // namespace hybridnet::python
