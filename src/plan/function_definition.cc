// Graphs as functions: inputs in an order of the caller's, and updates.
#include <algorithm>
#include <unordered_set>

#include "plan/graph_callable.h"

namespace hybridnet {
namespace {

void check(const GraphDefinition& definition, const std::string& name) {
  const auto check_count = [&](const char* list, size_t given, size_t expected) {
    if (given == 0 || given == expected) return;
    throw ValueError({.op = name, .input = list, .expected = std::to_string(expected), .given = std::to_string(given)});
  };
  check_count("donated", definition.donated.size(), definition.inputs.size());
  check_count("borrowed", definition.borrowed.size(), definition.outputs.size());
  std::unordered_set<const Node*> inputs;
  for (const NodePtr& input : definition.inputs) {
    if (!inputs.insert(input.get()).second)
      throw ValueError({.op = name, .input = input->name, .message = "the variable is an input twice"});
  }
  for (const Node* node : topological_order(definition.roots())) {
    if (node->is_variable() && !node->constant && inputs.count(node) == 0)
      throw ValueError({.op = name,
                        .input = node->name,
                        .message = "the graph reads a variable that is no input",
                        .fix = "pass it as an input, or give it a value by mx.shared"});
  }
  std::vector<bool> updated(definition.inputs.size());
  for (const Graph::Writeback& update : definition.updates) {
    const auto input = static_cast<size_t>(update.input);
    if (input >= updated.size())
      throw IndexError({.op = name, .message = "an update names an input that does not exist"});
    if (updated[input])
      throw ValueError({.op = name, .input = definition.inputs[input]->name, .message = "it has two updates"});
    updated[input] = true;
  }
}

// Inputs that hold a value (shared variables) become variables without one: each call gives their value, and no rewrite
// may treat it as a constant.
void forget_values(GraphDefinition& definition) {
  const auto has_value = [](const NodePtr& input) { return static_cast<bool>(input->constant); };
  if (std::none_of(definition.inputs.begin(), definition.inputs.end(), has_value)) return;
  std::vector<Value> variables;
  for (NodePtr& input : definition.inputs) {
    const NodePtr variable = has_value(input) ? make_variable(input->name) : input;
    if (has_value(input)) {
      variable->attrs = input->attrs;
      variable->where = input->where;
      variable->block = input->block;
    }
    variables.push_back(to_value(NodeEntry{variable, 0}));
  }
  const GraphDefinition all{definition.inputs, definition.roots()};
  const std::vector<Value> roots = all.applied_to(variables);
  for (size_t i = 0; i < definition.inputs.size(); ++i) definition.inputs[i] = to_entry(variables[i]).node;
  const size_t num_outputs = definition.outputs.size();
  for (size_t i = 0; i < num_outputs; ++i) definition.outputs[i] = to_entry(roots[i]);
  for (size_t i = num_outputs; i < roots.size(); ++i) definition.updates[i - num_outputs].value = to_entry(roots[i]);
}

}  // namespace

GraphDefinition function_definition(GraphDefinition definition, const std::string& name) {
  definition.checked = true;
  check(definition, name);
  forget_values(definition);
  return definition;
}

}  // namespace hybridnet
