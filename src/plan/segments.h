// A graph in parts. It is cut after operators whose output shapes are known only after they ran (boolean_mask, loops
// with one row per iteration, branches of different sizes) and around operators that request their inputs one by one.
// The nodes between cuts form segments: a segment is a graph function of its own, compiled when its sizes are known,
// with its own gradient.
//
// If inputs are sparse, the graph is also cut at the operators that have a form for sparse arrays
// (sparse/operators.h) and may read some; segments and all other cuts read dense copies.
//
// Only needed parts run: a lazy operator (mx.operator, CustomOp.lazy_step) requests its inputs when it runs, and so
// does a branch whose size may differ from the other's. Nodes that only they would read form a segment of their own,
// left out unless one of them requests it.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hybridnet/ndarray.h"
#include "plan/compilation.h"

namespace hybridnet {

class GraphCallable;

class SegmentedGraph {
 public:
  // True if the graph must be cut at this node. for_gradient: in a run whose gradient is wanted.
  static bool cuts_at(const Node& node, bool for_gradient);
  // True if the node makes a sparse value from dense values.
  static bool makes_sparse(const Node& node);

  // storages: one per input. definition and options outlive the object.
  SegmentedGraph(const GraphDefinition& definition, const CompileOptions& options, bool for_gradient, bool train,
                 std::span<const StorageType> storages);

  // Runs on the calling thread; each part is recorded if autograd records. May wait.
  std::vector<NDArray> run(std::span<const NDArray> inputs, RngKey key);

  size_t num_segments() const { return num_segments_; }
  // The functions of the segments, and of bodies of loops and branches that have run.
  std::vector<Ref<GraphCallable>> functions();
  std::string text() const;  // the segments and the cuts

  // For loops and branches: returns the function of one node's inputs, or of one of its bodies, kept for further calls.
  Ref<GraphCallable> function_of(const Node& node, int number, const std::function<GraphDefinition()>& make);
  Ref<GraphCallable> body_of(const Node& node, size_t body);

 private:
  class Run;  // one call
  // The source of a value: output `index` of a part, input `index` of the graph (as it is when a part begins, or as it
  // was when the call began), or a constant.
  struct Source {
    enum class Kind : int8_t { kPart, kInput, kFirstValue, kConstant } kind;
    int part = 0, index = 0;
    NDArray constant;
  };
  struct Part {
    const Node* cut = nullptr;    // null: a segment
    Ref<GraphCallable> function;  // segments only
    std::vector<Source> inputs;
    std::vector<std::vector<const Node*>> readers;  // per input of a segment: the nodes that read it
    bool keeps_storage = false;                     // a cut that reads sparse arrays without a dense copy
    bool on_request = false;                        // only requests of lazy operators and branches lead to it
  };
  // The requests that lead to a node: pairs of a lazy node and its input. Empty: it is needed in any case.
  using Requests = std::set<std::pair<const Node*, size_t>>;
  struct Cutter;

  static bool is_lazy(const Node& node, bool for_gradient);

  const GraphDefinition& definition_;
  const CompileOptions& options_;
  const bool for_gradient_, train_;
  std::vector<Part> parts_;  // in the order to run them
  std::vector<Source> outputs_;
  std::set<int> copied_inputs_;  // some part writes to them, and a later one, or the caller, reads the value before
  size_t num_segments_ = 0;
  std::mutex mutex_;
  std::map<std::pair<const Node*, int>, Ref<GraphCallable>> functions_;
};

}  // namespace hybridnet
