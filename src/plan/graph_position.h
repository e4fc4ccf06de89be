// The place of the calling thread in a graph: loops with their iterations, branches, and the operator. It is known when
// code outside the library runs (Custom), whose errors report it.
#pragma once

#include <cstdint>
#include <string>

#include "hybridnet/graph.h"

namespace hybridnet {

// Sets the thread's place during its lifetime. Costs two stores; the text is made only on request.
class GraphPositionScope {
 public:
  static constexpr int64_t kOperator = -1, kThenBranch = -2, kElseBranch = -3;  // others: the number of an iteration

  GraphPositionScope(const std::string& name, SourceLocation where, int64_t part);  // name outlives the scope
  GraphPositionScope(const Node& node, int64_t part) : GraphPositionScope(node.name, node.where, part) {}
  ~GraphPositionScope();
  GraphPositionScope(const GraphPositionScope&) = delete;
  GraphPositionScope& operator=(const GraphPositionScope&) = delete;

 private:
  friend std::string current_graph_position();
  const std::string& name_;
  const SourceLocation where_;
  const int64_t part_;
  const GraphPositionScope* around_;
};

// Returns the path from the outermost loop to the operator: "'net_foreach0, iteration 2: net_custom0' (model.py:12)";
// "" outside graphs.
std::string current_graph_position();

}  // namespace hybridnet
