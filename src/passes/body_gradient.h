// One body of a loop or branch, differentiated and cut in two.
#pragma once

#include "graph/control/control_flow.h"
#include "passes/gradient.h"

namespace hybridnet {

struct BodyGradient {
  SplitGraph split;
  std::vector<int> output_of_head;  // per head that split.sources counts: number of the body's output
  std::vector<int> grad_of_input;   // per input of the body: output of split.backward, -1: zero or unwanted
};

// wanted: inputs of the body whose gradients are asked for. heads: outputs at which a gradient arrives.
// recompute: the backward body reads inputs only; the forward body stays as it is. loop: whose body it is, where values
// that are cheap to make again need not be kept of every iteration (remat.h).
BodyGradient differentiate_body(Graph body, const std::vector<bool>& wanted, const std::vector<bool>& heads,
                                bool recompute = false, const LoopSpec* loop = nullptr);

// For loops: which carries hold something that depends on a wanted input, and at which carries a gradient arrives, in
// this or a later iteration. Both grow to a fixpoint over the iterations.
void close_over_iterations(const Graph& body, const LoopSpec& loop, std::vector<bool>& wanted,
                           std::vector<bool>& heads);

}  // namespace hybridnet
