// Gradients as graph nodes, and the cut into a forward and a backward graph.
#pragma once

#include <vector>

#include "hybridnet/pass.h"

namespace hybridnet {

// Attribute of inputs that stand for gradients of a graph's outputs.
inline constexpr char kHeadAttribute[] = "__head__";

// Extends the graph by the gradients of its outputs with respect to the listed inputs. Each output that has a gradient
// gets a new input, for the gradient that arrives there.
struct Gradients {
  std::vector<int> heads;            // per output at the time of the call: number of the new input, -1: has no gradient
  std::vector<NodeEntry> of_inputs;  // parallel to the wanted inputs; null: zero
  std::vector<uint8_t> connected;    // per output: true if it depends on a wanted input, with or without head
};
// One call of a gradient rule for a node, and the nodes that it made, in this order.
struct AskedRule {
  const Node* node;
  std::vector<bool> arrives, wanted;  // per output: a gradient arrives. Per input: its gradient is wanted
  std::vector<const Node*> made;
};
// heads: the outputs at which a gradient arrives; null: all that have one. asked: receives the calls of gradient rules,
// except for loops and branches; may be null.
Gradients add_gradients(Graph& graph, const std::vector<int>& wanted_inputs, const std::vector<bool>* heads = nullptr,
                        std::vector<AskedRule>* asked = nullptr);

// Replaces the `_gradient` nodes of a graph by gradients (graph/gradient_node.h). Throws UnsupportedError if a node
// asks for the gradient with respect to a value that is not an input of the graph, or for the gradient of values that
// are not floating.
bool has_gradient_nodes(const Graph& graph);
void expand_gradient_nodes(Graph& graph, std::vector<AskedRule>* asked = nullptr);

// The nodes that the gradient rule of `node` makes for these arriving and wanted gradients.
struct RuleNode {
  const Op* op;
  ParamsPtr params;
};
std::vector<RuleNode> ask_gradient_rule(const Graph& graph, const Node& node, const std::vector<bool>& arrives,
                                        const std::vector<bool>& wanted);

// The source of an input of the backward graph.
struct BackwardInput {
  enum class Kind : int8_t { kForwardInput, kForwardOutput, kResidual, kHead } kind;
  int index = 0;
};

// A joint graph (outputs: first `num_outputs` of the model, then gradients) cut in two. The forward graph has the
// model's inputs and outputs, then one output per residual: a value that only exists to be read by the backward graph.
struct SplitGraph {
  Graph forward, backward;
  std::vector<BackwardInput> sources;  // per input of backward
  int num_residuals = 0;
};
// Attribute of nodes that are computed again rather than kept for the backward run.
inline constexpr char kCheapAttribute[] = "__cheap__";
// recompute: the backward graph computes the forward values again, from the inputs and the values marked with
// kKeepAttribute.
SplitGraph split_gradient(const Graph& joint, int num_inputs, int num_outputs, bool recompute = false);

}  // namespace hybridnet
