#include "graph/arithmetic.h"

#include <algorithm>
#include <string>
#include <utility>

namespace hybridnet {
namespace {

constexpr Arithmetic kArithmetic[] = {
    {"add", "elemwise_add", "broadcast_add", "_plus_scalar", "", "_grad_add"},
    {"sub", "elemwise_sub", "broadcast_sub", "_minus_scalar", "_rminus_scalar"},
    {"mul", "elemwise_mul", "broadcast_mul", "_mul_scalar", ""},
    {"div", "elemwise_div", "broadcast_div", "_div_scalar", "_rdiv_scalar"},
    {"mod", "broadcast_mod", "broadcast_mod", "_mod_scalar", "_rmod_scalar"},
    {"pow", "broadcast_power", "broadcast_power", "_power_scalar", "_rpower_scalar"},
    {"maximum", "broadcast_maximum", "broadcast_maximum", "_maximum_scalar", ""},
    {"minimum", "broadcast_minimum", "broadcast_minimum", "_minimum_scalar", ""},
};

bool is_number_left(const Arithmetic& arithmetic, const Op& op) {
  return !arithmetic.is_commutative() && op.name == arithmetic.number_left;
}

std::optional<double> scalar_of(const Node& node) {
  const int field = node.op->schema->find("scalar");
  if (field < 0) return std::nullopt;
  const AttrValue value = node.op->schema->get(node.params->data(), field);
  if (const auto* real = std::get_if<double>(&value.value)) return *real;
  if (const auto* whole = std::get_if<int64_t>(&value.value)) return static_cast<double>(*whole);
  return std::nullopt;
}

}  // namespace

std::vector<std::string_view> Arithmetic::operators() const {
  std::vector<std::string_view> names{equal_shapes};
  for (const std::string_view other : {broadcast, number_right, number_left, of_gradients})
    if (!other.empty() && other != equal_shapes) names.push_back(other);
  return names;
}

const Arithmetic* find_arithmetic(std::string_view name) {
  const auto* found =
      std::find_if(std::begin(kArithmetic), std::end(kArithmetic), [&](const Arithmetic& a) { return a.name == name; });
  return found == std::end(kArithmetic) ? nullptr : found;
}

const Arithmetic* arithmetic_of(const Op& op) {
  const auto* found = std::find_if(std::begin(kArithmetic), std::end(kArithmetic), [&](const Arithmetic& a) {
    const auto is_name = [&](std::string_view name) { return name == op.name; };  // no operator has an empty name
    return is_name(a.equal_shapes) || is_name(a.broadcast) || is_name(a.number_right) || is_name(a.number_left) ||
           is_name(a.of_gradients);
  });
  return found == std::end(kArithmetic) ? nullptr : found;
}

bool is_of_arrays(const NodeEntry& entry, std::string_view arithmetic) {
  const Node& node = *entry.node;
  if (node.is_variable() || entry.index != 0 || node.inputs.size() != 2) return false;
  const Arithmetic* found = arithmetic_of(*node.op);
  return found != nullptr && found->name == arithmetic;
}

std::vector<Operand> operands_of(const Node& node) {
  std::vector<Operand> operands;
  for (const NodeEntry& input : node.inputs) operands.push_back({input, {}});
  const Arithmetic* arithmetic = node.is_variable() || operands.size() != 1 ? nullptr : arithmetic_of(*node.op);
  if (arithmetic == nullptr) return operands;
  const Operand number{{}, scalar_of(node)};
  operands.insert(is_number_left(*arithmetic, *node.op) ? operands.begin() : operands.end(), number);
  return operands;
}

NodePtr add_arithmetic(Graph& graph, const Arithmetic& arithmetic, const Operand& left, const Operand& right,
                       const Node* origin) {
  if (!left.number && !right.number) {
    const bool equal = graph.spec(left.entry).shape == graph.spec(right.entry).shape;
    const Op& op = op_registry().at(equal ? arithmetic.equal_shapes : arithmetic.broadcast);
    return graph.add(op, op.default_params, {left.entry, right.entry}, origin);
  }
  if (left.number && right.number)
    throw ValueError(
        {.op = std::string(arithmetic.name), .message = "both operands are numbers", .fix = "compute the result"});
  const bool number_left = left.number.has_value() && !arithmetic.is_commutative();
  const Op& op = op_registry().at(number_left ? arithmetic.number_left : arithmetic.number_right);
  const double number = left.number ? *left.number : *right.number;
  ParamsPtr params =
      op.schema->parse(std::vector<std::pair<std::string, AttrValue>>{{"scalar", AttrValue{number}}}, op.name);
  return graph.add(op, std::move(params), {left.number ? right.entry : left.entry}, origin);
}

}  // namespace hybridnet
