// Gradients as graph nodes, and the cut between what runs forward and what runs backward.
#pragma once

#include <vector>

#include "hybridnet/pass.h"

namespace hybridnet {

// On inputs of a graph that stand for gradients of its outputs.
inline constexpr char kHeadAttribute[] = "__head__";

// Extends graph by the gradients of its outputs with respect to the listed inputs. One input per output that has a
// gradient is added for the one that arrives there.
struct Gradients {
  std::vector<int> heads;            // per output at the time of the call: number of the new input, -1: has no gradient
  std::vector<NodeEntry> of_inputs;  // parallel to the wanted inputs; null: zero
  std::vector<uint8_t> connected;    // per output: does it depend on a wanted input, whether or not it has a head?
};
// A gradient rule that was asked for the gradients of a node, and the nodes that it made, in this order.
struct AskedRule {
  const Node* node;
  std::vector<bool> arrives, wanted;  // per output: does a gradient arrive? Per input: is its gradient wanted?
  std::vector<const Node*> made;
};
// heads: at which outputs a gradient arrives; null: at all that have one. asked: what was asked, but of loops and
// branches; may be null.
Gradients add_gradients(Graph& graph, const std::vector<int>& wanted_inputs, const std::vector<bool>* heads = nullptr,
                        std::vector<AskedRule>* asked = nullptr);

// Puts gradients in the place of the `_gradient` nodes of a graph (graph/gradient_node.h). Throws UnsupportedError
// where such a node asks for the gradient of something else than an input of the graph, or of values that are not
// floating.
bool has_gradient_nodes(const Graph& graph);
void expand_gradient_nodes(Graph& graph, std::vector<AskedRule>* asked = nullptr);

// What the rule of one node makes where these gradients arrive and are wanted.
struct RuleNode {
  const Op* op;
  ParamsPtr params;
};
std::vector<RuleNode> ask_gradient_rule(const Graph& graph, const Node& node, const std::vector<bool>& arrives,
                                        const std::vector<bool>& wanted);

// Where an input of the backward graph comes from.
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
// On nodes that are made again rather than kept for the backward run.
inline constexpr char kCheapAttribute[] = "__cheap__";
// recompute: the backward graph makes the values of the forward one again, from the inputs and what is marked with
// kKeepAttribute.
SplitGraph split_gradient(const Graph& joint, int num_inputs, int num_outputs, bool recompute = false);

}  // namespace hybridnet
