// Parameters of loops and branches, and the assignment of a node's inputs to its bodies.
#include <algorithm>
#include <unordered_set>

#include "graph/control/control_flow.h"

namespace hybridnet {

void LoopSpec::describe(ParamSchema<LoopSpec>& schema) {
  schema.field("num_args", &LoopSpec::num_args).default_value(0).doc("Number of inputs.");
  schema.field("num_seq", &LoopSpec::num_seq).default_value(0).doc("Inputs that an iteration gets a slice of.");
  schema.field("num_carry", &LoopSpec::num_carry).default_value(0).doc("Values that pass from iteration to iteration.");
  schema.field("num_out", &LoopSpec::num_out).default_value(0).doc("How many outputs are stacked.");
  schema.field("reverse", &LoopSpec::reverse).default_value(false).doc("Whether the last slice comes first.");
  schema.field("scalar_slices", &LoopSpec::scalar_slices)
      .default_value(false)
      .doc("Whether slices of vectors and the number of iterations have shape () instead of (1,).");
  schema.field("counted", &LoopSpec::counted)
      .default_value(false)
      .doc("Whether the last input is the number of iterations, or the limit, of this run.");
  schema.field("length", &LoopSpec::length).none_by_default().doc("Number of iterations without sequences.");
  schema.field("max_iterations", &LoopSpec::max_iterations)
      .none_by_default()
      .doc("Largest number of iterations of a loop with a condition.");
  schema.field("exact", &LoopSpec::exact)
      .default_value(false)
      .doc("Whether outputs have as many rows as there were iterations, instead of max_iterations.");
  schema.field("on_limit", &LoopSpec::on_limit)
      .default_value("stop")
      .one_of({"stop", "warn", "raise"})
      .doc("The action if the limit ends the loop while its condition holds.");
  schema.field("free_axes", &LoopSpec::free_axes)
      .default_value("()")
      .doc("Pairs of a carry and an axis whose size may change from iteration to iteration.");
  schema.field("truncate_gradient", &LoopSpec::truncate_gradient)
      .default_value(0)
      .doc("Gradients flow through the last so many iterations. 0: all.");
  schema.field("detach_every", &LoopSpec::detach_every)
      .default_value(0)
      .doc("Gradients of carries stop at every so many iterations. 0: never.");
  schema.field("checkpoint", &LoopSpec::checkpoint).default_value("").doc("The values that are kept for the gradient.");
  schema.field("draw_offset", &LoopSpec::draw_offset).default_value(0).doc("Iteration that the first row begins at.");
  schema.field("draw_stride", &LoopSpec::draw_stride).default_value(1).doc("Iterations from one row to the next.");
}

void BranchSpec::describe(ParamSchema<BranchSpec>& schema) {
  schema.field("num_args", &BranchSpec::num_args).default_value(0).doc("Number of inputs.");
  schema.field("num_out", &BranchSpec::num_out).default_value(0).doc("Number of outputs of both branches.");
  schema.field("then_extra", &BranchSpec::then_extra).default_value(0).doc("Outputs of the then branch alone.");
  schema.field("else_extra", &BranchSpec::else_extra).default_value(0).doc("Outputs of the else branch alone.");
  schema.field("dynamic", &BranchSpec::dynamic)
      .default_value(false)
      .doc("Whether only running tells the sizes of the outputs.");
  schema.field("strict_shape", &BranchSpec::strict_shape)
      .default_value(false)
      .doc("Whether branches whose outputs differ in size are an error.");
}

ControlKind control_kind(const Op& op) {
  if (op.subgraph_names.empty()) return ControlKind::kNone;
  if (op.name == "_foreach") return ControlKind::kForeach;
  return op.name == "_while_loop" ? ControlKind::kWhileLoop : ControlKind::kCond;
}

int64_t rows_of(const LoopSpec& loop, const TensorSpec& first) {
  return loop.num_seq > 0 ? first.shape[0] : loop.length.value_or(0);
}

int direct_predicate(const Node& node) {
  const Subgraph& pred = *node.subgraphs[0];
  const Node& head = *pred.outputs[0].node;
  const bool is_copy = !head.is_variable() && head.op->name == "_copy";
  const NodePtr& given = is_copy ? head.inputs[0].node : pred.outputs[0].node;
  const auto found = std::find(pred.inputs.begin(), pred.inputs.end(), given);
  return found == pred.inputs.end() ? -1 : static_cast<int>(found - pred.inputs.begin());
}

std::vector<bool> read_inputs(const Subgraph& body) {
  const std::vector<Node*> nodes = topological_order(body.outputs);
  const std::unordered_set<const Node*> reached(nodes.begin(), nodes.end());
  std::vector<bool> read;
  for (const NodePtr& input : body.inputs) read.push_back(reached.count(input.get()) != 0);
  return read;
}

std::vector<int> bodies_reading(const Node& node) {
  std::vector<int> readers(node.inputs.size());
  for (size_t b = 0; b < node.subgraphs.size(); ++b) {
    const std::vector<bool> read = read_inputs(*node.subgraphs[b]);
    for (size_t k = 0; k < read.size(); ++k) readers[k] |= read[k] ? 1 << b : 0;
  }
  return readers;
}

NodePtr body_variable(const NodeEntry& outside) {
  NodePtr variable = make_variable(outside.node->name);
  if (outside.index < outside.node->specs.size()) variable->specs = {outside.node->specs[outside.index]};
  return variable;
}

void bind_bodies(std::vector<NodeEntry>& inputs, std::span<BoundBody> bodies, size_t fixed) {
  std::vector<std::vector<NodePtr>> slots(bodies.size());  // per body, by slot; null: the body does not read it
  for (size_t b = 0; b < bodies.size(); ++b) {
    const std::vector<NodePtr>& variables = bodies[b].body->inputs;
    const std::vector<bool> read = read_inputs(*bodies[b].body);
    for (size_t i = 0; i < variables.size(); ++i) {
      size_t slot = i;
      if (i >= fixed) {
        if (!read[i]) continue;
        slot = fixed;
        const auto taken = [&] { return slot < slots[b].size() && slots[b][slot]; };
        while (slot < inputs.size() && (taken() || !(inputs[slot] == bodies[b].outside[i]))) ++slot;
        if (slot == inputs.size()) inputs.push_back(bodies[b].outside[i]);
      }
      if (slots[b].size() <= slot) slots[b].resize(slot + 1);
      slots[b][slot] = variables[i];
    }
  }
  for (size_t b = 0; b < bodies.size(); ++b) {
    slots[b].resize(inputs.size());
    for (size_t k = 0; k < inputs.size(); ++k)
      if (!slots[b][k]) slots[b][k] = body_variable(inputs[k]);
    auto bound = make_ref<Subgraph>();
    bound->inputs = std::move(slots[b]);
    bound->outputs = bodies[b].body->outputs;
    bodies[b] = {std::move(bound), inputs};
  }
}

}  // namespace hybridnet
