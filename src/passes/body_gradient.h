// One body of a loop or branch, differentiated and cut in two.
#pragma once

#include "passes/gradient.h"

namespace hybridnet {

struct BodyGradient {
  SplitGraph split;
  std::vector<int> output_of_head;  // per head that split.sources counts: number of the body's output
  std::vector<int> grad_of_input;   // per input of the body: output of split.backward, -1: zero or unwanted
};

// wanted: inputs of the body whose gradients are asked for. heads: outputs at which a gradient arrives.
// recompute: the backward body reads inputs only; the forward body stays as it is.
BodyGradient differentiate_body(Graph body, const std::vector<bool>& wanted, const std::vector<bool>& heads,
                                bool recompute = false);

// For loops: which states carry something that depends on a wanted input, and at which states a gradient arrives, in
// this or a later iteration. Both grow to a fixpoint over the iterations. state_inputs: input of the body per state;
// first_state: output of state 0.
void close_over_iterations(const Graph& body, const std::vector<int>& state_inputs, int first_state,
                           std::vector<bool>& wanted, std::vector<bool>& heads);

}  // namespace hybridnet
