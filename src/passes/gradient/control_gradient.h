// Gradients of loops and branches, made of loops and branches: so they can be optimized and differentiated in turn.
#pragma once

#include <utility>

#include "hybridnet/pass.h"

namespace hybridnet {

// Thrown if a gradient goes through a loop without max_iterations: nothing bounds the number of iterations to keep. The
// caller cuts the graph at the loop instead, which then runs in chunks.
class UnboundedLoopError : public GradientError {
 public:
  using GradientError::GradientError;
};

struct ControlGradient {
  std::vector<NodeEntry> of_inputs;  // one per input of the node; null: zero
  EntryMap replaced;                 // old outputs of the node -> outputs of the new node
};

// Adds the nodes that compute the gradients of node's inputs. Replaces the node by one that also returns the values
// that they read. output_grads: one per output, null: nothing arrives. wanted: per input, true if its gradient is asked
// for.
ControlGradient differentiate_control(Graph& graph, Node& node, const std::vector<NodeEntry>& output_grads,
                                      const std::vector<bool>& wanted);

}  // namespace hybridnet
