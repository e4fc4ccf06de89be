// The gradient of a loop: a loop over the same iterations in the other direction.
#pragma once

#include <functional>
#include <vector>

#include "passes/control_gradient.h"

namespace hybridnet {

// What both kinds of loops have in common: a body with slices, states and captured values.
struct Loop {
  size_t body = 0;                // number of the subgraph
  std::vector<int> sources;       // node input of each input of the body
  std::vector<int> state_inputs;  // input of the body per state
  std::vector<bool> is_slice;     // per input of the body
  int num_out_data = 0;
  int64_t rows = 0;  // of stacked outputs
  bool reverse = false;
  NodeEntry count;  // run-time number of iterations, null: `rows`
  int64_t truncate = 0, detach_every = 0;
  bool recompute = false;                   // keep the states of each iteration and what is marked, compute the rest
  std::function<ParamsPtr(int32_t)> widen;  // parameters of the same loop with more stacked outputs
};

// As differentiate_control.
ControlGradient differentiate_loop(Graph& graph, Node& node, const std::vector<NodeEntry>& output_grads,
                                   const std::vector<bool>& wanted, Loop loop);

}  // namespace hybridnet
