#include "plan/loop_rows.h"

#include "graph/control_flow.h"
#include "plan/loop_by_node.h"

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

}  // namespace

GraphDefinition definition_of_copy(const Node& node, ParamsPtr params, int num_inputs) {
  const NodePtr alone = make_node(*node.op, node.name, std::move(params), {});
  alone->attrs = node.attrs;
  alone->subgraphs = node.subgraphs;
  alone->where = node.where;
  alone->block = node.block;
  GraphDefinition definition;
  for (int i = 0; i < num_inputs; ++i) {
    definition.inputs.push_back(make_variable(node.name + "_input" + std::to_string(i)));
    alone->inputs.push_back({definition.inputs.back(), 0});
  }
  for (int i = 0; i < alone->num_outputs(); ++i) definition.outputs.push_back({alone, static_cast<uint32_t>(i)});
  return definition;
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
  for (const NDArray& row : given) {
    if (row.spec() == given[0].spec()) continue;
    throw ShapeError({.op = node.op->name,
                      .node = node.name,
                      .message = "an output differs between iterations",
                      .because = given[0].spec().str() + " and " + row.spec().str() + " cannot be stacked",
                      .fix = "give every iteration outputs of the same shape",
                      .where = node.where});
  }
  return padded(apply(kStack, given, {{"num_args", static_cast<int64_t>(given.size())}, {"axis", 0}})[0], rows);
}

NDArray joined_rows(const std::vector<NDArray>& pieces, const TensorSpec& spec, int64_t rows, const Node& node) {
  return pieces.empty() ? rows_without_iterations(spec, rows, node) : padded(joined(pieces), rows);
}

}  // namespace hybridnet
