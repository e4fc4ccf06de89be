#include "graph/control/input_use.h"

#include "graph/control/control_flow.h"

namespace hybridnet {
namespace {

bool updates_states_now(const Node& node, bool train) {
  return node.op->has_writebacks() &&
         (!node.op->writeback_active || node.op->writeback_active(node.params->data(), train));
}

// True if `uses` holds for a use of the input in a body.
template <typename Uses>
bool any_use_in_bodies(const Node& node, size_t input, const Uses& uses) {
  for (const Ref<Subgraph>& body : node.subgraphs) {
    if (input >= body->inputs.size()) continue;  // the count or limit, which bodies do not see
    const Node* const variable = body->inputs[input].get();
    for (const NodeEntry& output : body->outputs)
      if (output.node.get() == variable && uses(nullptr, 0)) return true;
    for (const Node* inner : topological_order(body->outputs))
      for (size_t i = 0; i < inner->inputs.size(); ++i)
        if (inner->inputs[i].node.get() == variable && uses(inner, i)) return true;
  }
  return false;
}

}  // namespace

bool writes_input(const Node& node, size_t input, bool train) {
  if (node.is_variable()) return false;
  if (!node.subgraphs.empty())
    return any_use_in_bodies(node, input, [train](const Node* inner, size_t i) {
      return inner != nullptr && writes_input(*inner, i, train);
    });
  if (!updates_states_now(node, train)) return false;
  for (int output = 0; output < node.num_outputs(); ++output)
    if (node.op->writeback_input(node.params->data(), output) == static_cast<int>(input)) return true;
  return false;
}

bool reads_input(const Node& node, size_t input, bool train) {
  if (node.is_variable()) return false;
  if (!node.subgraphs.empty()) {
    bool is_bound = false;  // to a body; the count of a loop is not
    for (const Ref<Subgraph>& body : node.subgraphs) is_bound = is_bound || input < body->inputs.size();
    return !is_bound || any_use_in_bodies(node, input, [train](const Node* inner, size_t i) {
      return inner == nullptr || reads_input(*inner, i, train);
    });
  }
  // The states of operators with a fixed list of inputs are declared; those of Custom are also read.
  return node.op->variadic || !is_auxiliary_input(node, input) || !writes_input(node, input, train);
}

}  // namespace hybridnet
