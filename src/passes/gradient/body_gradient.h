// One body of a loop or branch, differentiated and cut in two.
#pragma once

#include "graph/control/control_flow.h"
#include "passes/gradient/gradient.h"

namespace hybridnet {

struct BodyGradient {
  SplitGraph split;
  std::vector<int> output_of_head;  // per head that split.sources counts: number of the body's output
  std::vector<int> grad_of_input;   // per input of the body: output of split.backward, -1: zero or unwanted
};

// wanted: inputs of the body whose gradients are asked for. heads: outputs at which a gradient arrives.
// recompute: the backward body reads inputs only; the forward body stays as it is. loop: the loop of the body, if any:
// values that are cheap to compute again need not be kept for every iteration (remat.h).
BodyGradient differentiate_body(Graph body, const std::vector<bool>& wanted, const std::vector<bool>& heads,
                                bool recompute = false, const LoopSpec* loop = nullptr);

// For loops: adds to `wanted` the carries that depend on a wanted input, and to `heads` the carries at which a gradient
// arrives, in this or a later iteration. Both grow to a fixpoint over the iterations.
void close_over_iterations(const Graph& body, const LoopSpec& loop, std::vector<bool>& wanted,
                           std::vector<bool>& heads);

}  // namespace hybridnet
