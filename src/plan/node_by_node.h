// Runs a graph operator by operator on the calling thread, as if the user had called them one after the other: graphs
// that cannot be linked ahead, because shapes depend on values or because an operator's code is outside the library
// (Custom). Recorded operator by operator as well.
//
// What runs is what somebody needs: a lazy operator (mx.operator, CustomOp.lazy_step) asks for its inputs one by one,
// and the branch of a cond that is not taken asks for nothing, so what only they would read is left out.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "hybridnet/ndarray.h"
#include "plan/compiled_call.h"

namespace hybridnet {

class GraphFunction;

class NodeByNode {
 public:
  // Both are kept by the caller.
  NodeByNode(const GraphDefinition& definition, const CompileOptions& options)
      : definition_(definition), options_(options) {}
  // Must graphs with this node run node by node? True for nodes whose output shapes only running tells, and for loops
  // and branches with such an operator in a body.
  static bool is_needed_for(const Node& node);

  std::vector<NDArray> run(std::span<const NDArray> inputs);

  // For loops: the function of one node's inputs, or of one of its bodies, kept for further calls. by_node: never
  // linked.
  Ref<GraphFunction> function_of(const Node& node, int number, const std::function<GraphDefinition()>& make,
                                 bool by_node = false);
  Ref<GraphFunction> body_of(const Node& node, size_t body);

 private:
  class Run;  // one call
  Ref<GraphFunction> whole(const Node& node);

  const GraphDefinition& definition_;
  const CompileOptions& options_;
  std::mutex mutex_;
  std::map<std::pair<const Node*, int>, Ref<GraphFunction>> functions_;
};

}  // namespace hybridnet
