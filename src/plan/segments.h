// A graph in parts: it is cut behind operators whose output shapes only running tells (boolean_mask, loops of as many
// rows as iterations ran, branches of different sizes) and around operators that request their inputs one by one. What
// lies between is a segment: a graph function of its own, compiled when its sizes are known, with its own gradient.
//
// Where inputs are sparse, it is cut at the operators that have a form for sparse arrays
// (imperative/sparse_operators.h) and may read some; segments and all other cuts read dense copies.
//
// What runs is what is needed: a lazy operator (mx.operator, CustomOp.lazy_step) requests its inputs when it runs, and
// so does a branch whose size may differ from the other's. What only they would read is a segment of its own, left out
// unless one of them requests it.
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
#include "plan/compiled_call.h"

namespace hybridnet {

class GraphFunction;

class SegmentedGraph {
 public:
  // Must the graph be cut at this node? for_gradient: of a run whose gradient is wanted.
  static bool cuts_at(const Node& node, bool for_gradient);
  // Does the node make a sparse value of dense ones?
  static bool makes_sparse(const Node& node);

  // For inputs in these storages. definition and options outlive the object.
  SegmentedGraph(const GraphDefinition& definition, const CompileOptions& options, bool for_gradient,
                 std::span<const StorageType> storages);

  // Runs on the calling thread, recorded part by part where autograd records. May wait.
  std::vector<NDArray> run(std::span<const NDArray> inputs, RngKey key);

  size_t num_segments() const { return num_segments_; }
  // Of the segments, and of bodies of loops and branches that have run.
  std::vector<Ref<GraphFunction>> functions();
  std::string text() const;  // what is a segment and where the cuts are

  // For loops and branches: the function of one node's inputs, or of one of its bodies, kept for further calls.
  Ref<GraphFunction> function_of(const Node& node, int number, const std::function<GraphDefinition()>& make);
  Ref<GraphFunction> body_of(const Node& node, size_t body);

 private:
  class Run;  // one call
  // Where a value comes from: output `index` of a part, input `index` of the graph, or a constant.
  struct Source {
    enum class Kind : int8_t { kPart, kInput, kConstant } kind;
    int part = 0, index = 0;
    NDArray constant;
  };
  struct Part {
    const Node* cut = nullptr;    // null: a segment
    Ref<GraphFunction> function;  // of a segment
    std::vector<Source> inputs;
    std::vector<std::vector<const Node*>> readers;  // of each input of a segment
    bool keeps_storage = false;                     // a cut that reads sparse arrays as they are
    bool on_request = false;                        // only requests of lazy operators and branches lead to it
  };
  // Which requests lead to a node: pairs of a lazy node and its input. Empty: it is needed in any case.
  using Requests = std::set<std::pair<const Node*, size_t>>;
  struct Cutter;

  static bool is_lazy(const Node& node, bool for_gradient);

  const GraphDefinition& definition_;
  const CompileOptions& options_;
  const bool for_gradient_;
  std::vector<Part> parts_;  // in the order to run them
  std::vector<Source> outputs_;
  size_t num_segments_ = 0;
  std::mutex mutex_;
  std::map<std::pair<const Node*, int>, Ref<GraphFunction>> functions_;
};

}  // namespace hybridnet
