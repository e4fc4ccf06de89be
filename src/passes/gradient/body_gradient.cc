#include "passes/gradient/body_gradient.h"

#include <unordered_set>

#include "graph/control/body_graph.h"
#include "passes/gradient/remat.h"

namespace hybridnet {
namespace {

using NodeSet = std::unordered_set<const Node*>;

bool passes_gradient(const Node& node) { return !node.is_variable() && !node.op->stops_gradient; }

// Nodes that depend on a marked input.
NodeSet downstream(const Graph& body, const std::vector<bool>& inputs) {
  NodeSet reached;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i]) reached.insert(body.inputs()[i].get());
  for (const Node* node : body.order()) {
    if (!passes_gradient(*node)) continue;
    for (const NodeEntry& input : node->inputs)
      if (reached.count(input.node.get()) != 0 && is_floating(body.spec(input).dtype)) reached.insert(node);
  }
  return reached;
}

// Nodes that a marked output depends on.
NodeSet upstream(const Graph& body, const std::vector<bool>& outputs) {
  NodeSet reached;
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i]) reached.insert(body.outputs()[i].node.get());
  const std::vector<Node*> order = body.order();
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    if (reached.count(*it) == 0 || !passes_gradient(**it)) continue;
    for (const NodeEntry& input : (*it)->inputs)
      if (is_floating(body.spec(input).dtype)) reached.insert(input.node.get());
  }
  return reached;
}

// Lets the backward part of a body compute cheap values again; with a number of bytes, all that is cheaper than a
// product.
void remat_body(Graph& body, const LoopSpec& loop) {
  const RematScope* around = RematScope::current();
  if (around == nullptr || around->settings().policy.kind == RematPolicy::Kind::kNone) return;
  // An input that the gradient does not read so far would have to be kept.
  const RematScope scope({.policy = around->settings().policy,
                          .is_cut = true,
                          .readable = std::vector<bool>(body.inputs().size(), false),
                          .body = RematScope::Settings::Body{.outs = loop.outs()}});
  run_pipeline(body, only(Stage::kRemat));
}

}  // namespace

void close_over_iterations(const Graph& body, const LoopSpec& loop, std::vector<bool>& wanted,
                           std::vector<bool>& heads) {
  auto is_floating_output = [&](size_t output) { return is_floating(body.spec(body.outputs()[output]).dtype); };
  auto node_of = [&](size_t output) { return body.outputs()[output].node.get(); };
  for (bool changed = true; changed;) {
    changed = false;
    const NodeSet reached = downstream(body, wanted);
    for (size_t s = 0; s < loop.carries(); ++s) {
      const size_t next = loop.final_carry(s);
      if (wanted[loop.carry(s)] || !is_floating_output(next) || reached.count(node_of(next)) == 0) continue;
      wanted[loop.carry(s)] = changed = true;
    }
  }
  const NodeSet reached = downstream(body, wanted);
  for (size_t i = 0; i < heads.size(); ++i)
    heads[i] = heads[i] && reached.count(node_of(i)) != 0 && is_floating_output(i);
  for (bool changed = true; changed;) {
    changed = false;
    const NodeSet leading = upstream(body, heads);
    for (size_t s = 0; s < loop.carries(); ++s) {
      const size_t slot = loop.carry(s), next = loop.final_carry(s);
      if (heads[next] || !wanted[slot] || leading.count(body.inputs()[slot].get()) == 0) continue;
      heads[next] = changed = true;
    }
  }
}

BodyGradient differentiate_body(Graph body, const std::vector<bool>& wanted, const std::vector<bool>& heads,
                                bool recompute, const LoopSpec* loop) {
  BodyGradient result;
  const int num_inputs = static_cast<int>(body.inputs().size()), num_outputs = static_cast<int>(body.outputs().size());
  result.grad_of_input.assign(static_cast<size_t>(num_inputs), -1);
  std::vector<int> wanted_inputs;
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i]) wanted_inputs.push_back(static_cast<int>(i));
  const Gradients gradients = add_gradients(body, wanted_inputs, &heads);
  for (size_t i = 0; i < gradients.heads.size(); ++i)
    if (gradients.heads[i] >= 0) result.output_of_head.push_back(static_cast<int>(i));
  int num_gradients = 0;
  for (size_t i = 0; i < wanted_inputs.size(); ++i) {
    if (!gradients.of_inputs[i].node) continue;
    body.add_output(gradients.of_inputs[i]);
    result.grad_of_input[static_cast<size_t>(wanted_inputs[i])] = num_gradients++;
  }
  // Later stages must wait until the body is linked: they drop nodes that a further derivative needs (stop_gradient)
  // and choose memory formats, which a frozen body does not carry.
  run_pipeline(body, only(Stage::kCleanJoint));
  if (loop && !recompute) remat_body(body, *loop);
  result.split = split_gradient(body, num_inputs, num_outputs, recompute);
  return result;
}

}  // namespace hybridnet
