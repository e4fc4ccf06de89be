// Gradients of loops and branches, made of loops and branches: so they can be optimized and differentiated in turn.
#pragma once

#include <utility>

#include "hybridnet/pass.h"

namespace hybridnet {

// A gradient goes through a loop without max_iterations: nothing says how much of its iterations must be kept. The
// caller cuts the graph at the loop instead, which then runs in chunks.
class UnboundedLoopError : public GradientError {
 public:
  using GradientError::GradientError;
};

struct ControlGradient {
  std::vector<NodeEntry> of_inputs;  // one per input of the node; null: zero
  EntryMap replaced;                 // outputs of the node and those of the one that took its place
};

// Adds what computes the gradients of node's inputs. The node is replaced by one that also gives what they read.
// output_grads: one per output, null: nothing arrives. wanted: per input, is its gradient asked for?
ControlGradient differentiate_control(Graph& graph, Node& node, const std::vector<NodeEntry>& output_grads,
                                      const std::vector<bool>& wanted);

}  // namespace hybridnet
