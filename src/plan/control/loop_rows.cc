#include "plan/control/loop_rows.h"

#include "graph/control/control_flow.h"
#include "graph/control/rules.h"
#include "plan/control/loop_by_node.h"

namespace hybridnet {
namespace {

const OpRef kSliceAxis{"slice_axis"}, kStack{"stack"}, kConcat{"Concat"};

using Attributes = std::vector<std::pair<std::string, AttrValue>>;

std::vector<NDArray> apply(const OpRef& op, std::span<const NDArray> inputs, const Attributes& attributes) {
  return invoke(op.op(), op.op().schema->parse(attributes, op.op().name), inputs);
}

NDArray joined(const std::vector<NDArray>& parts) {
  if (parts.size() == 1) return parts[0];
  return apply(kConcat, parts, {{"num_args", static_cast<int64_t>(parts.size())}, {"dim", 0}})[0];
}

NDArray padded(const NDArray& array, int64_t rows) {
  TensorSpec rest = array.spec();
  rest.shape[0] = rows - array.shape()[0];
  return rest.shape[0] <= 0 ? array : joined({array, zeros(rest, array.device())});
}

// As users call it.
std::string construct(const Node& node) {
  return node.op->name.compare(0, 1, "_") == 0 ? node.op->name.substr(1) : node.op->name;
}

}  // namespace

GraphDefinition definition_of_copy(const Node& node, ParamsPtr params, int num_inputs) {
  GraphDefinition definition;
  std::vector<NodeEntry> read;
  for (int i = 0; i < num_inputs; ++i) {
    definition.inputs.push_back(make_variable(node.name + "_input" + std::to_string(i)));
    read.push_back({definition.inputs.back(), 0});
  }
  const NodePtr alone = copy_of(node, std::move(read));
  alone->params = std::move(params);
  for (int i = 0; i < alone->num_outputs(); ++i) definition.outputs.push_back({alone, static_cast<uint32_t>(i)});
  return definition;
}

void check_state(const Node& node, size_t number, const TensorSpec& before, const TensorSpec& after,
                 const std::vector<bool>& free) {
  const bool is_while = control_kind(node) == ControlKind::kWhileLoop;
  const std::string which = (is_while ? "loop_vars[" : "states[") + std::to_string(number) + "]";
  if (auto broken = carry_rule(which, before, after, free, is_while))
    throw_broken(std::move(*broken), construct(node), {"", node.where});
}

void check_row(const Node& node, size_t number, const TensorSpec& first, const TensorSpec& row) {
  if (auto broken = row_rule("outputs[" + std::to_string(number) + "]", first, row))
    throw_broken(std::move(*broken), construct(node), {"", node.where});
}

NDArray rows_without_iterations(TensorSpec spec, int64_t rows, const Node& node) {
  if (spec.shape.rank_known() && spec.shape.ndim() > 0) spec.shape[0] = rows;
  if (spec.known()) return zeros(spec, {});
  throw ShapeError({.op = node.op->name,
                    .node = node.name,
                    .message = "the shape of an output cannot be told without an iteration: " + spec.str(),
                    .fix = "run at least one iteration",
                    .where = node.where});
}

NDArray first_rows(const NDArray& array, int64_t count) {
  if (count == array.shape()[0]) return array;
  if (count > 0) return apply(kSliceAxis, {&array, 1}, {{"axis", 0}, {"begin", 0}, {"end", count}})[0];
  TensorSpec spec = array.spec();
  spec.shape[0] = 0;
  return NDArray::empty(spec, array.device());
}

NDArray stacked_rows(const std::vector<NDArray>& given, const TensorSpec& spec, int64_t rows, const Node& node) {
  if (given.empty()) return rows_without_iterations(spec, rows, node);
  return padded(apply(kStack, given, {{"num_args", static_cast<int64_t>(given.size())}, {"axis", 0}})[0], rows);
}

NDArray joined_rows(const std::vector<NDArray>& pieces, const TensorSpec& spec, int64_t rows, const Node& node) {
  return pieces.empty() ? rows_without_iterations(spec, rows, node) : padded(joined(pieces), rows);
}

}  // namespace hybridnet
