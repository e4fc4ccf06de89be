// Nodes that depend on parameters only (folded weights): they run once per set of parameters, not once per call.
#pragma once

#include <string>
#include <vector>

#include "hybridnet/pass.h"

namespace hybridnet {

void mark_as_preparation(Node& node);
bool is_preparation(const Node& node);
// True for a parameter of the call and for prepared values. Preparation nodes read no other values.
bool is_parameter(const Graph& graph, const NodeEntry& entry);

// A graph cut in two: `preparation` has the graph's inputs and one output per value that crosses; `main` has the
// graph's inputs, then one per crossing value, and the graph's outputs. Nothing is cut if no node is marked.
struct PreparationSplit {
  Graph preparation, main;
  std::vector<int> reads;  // inputs that the preparation depends on
  int num_prepared = 0;
  // Equal for preparations that make the same values of the same inputs (of `reads`, in order).
  std::string recipe;
};
PreparationSplit split_preparation(const Graph& graph);
bool has_preparation(const Graph& graph);

}  // namespace hybridnet
