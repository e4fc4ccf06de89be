// Normalization written out, as one operator: a pass over memory instead of eight, and a gradient of its own.
#include "passes/attributes.h"
#include "passes/gradient_nodes.h"
#include "passes/reduced_axes.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

const OpRef kLayerNorm{"LayerNorm"}, kMean{"mean"}, kSquare{"square"}, kSqrt{"sqrt"}, kRsqrt{"rsqrt"},
    kPlus{"_plus_scalar"}, kPower{"_power_scalar"}, kSubtract{"broadcast_sub"}, kDivide{"broadcast_div"},
    kMultiply{"broadcast_mul"}, kAdd{"broadcast_add"}, kOnes{"_ones"}, kZeros{"_zeros"}, kReshape{"Reshape"};

const NodeEntry& before(const NodeEntry& entry) { return entry.node->inputs[0]; }

bool is_power(const NodeEntry& entry, double exponent) {
  return is_first_of(entry, kPower) && number_attribute(*entry.node, "scalar", exponent + 1) == exponent;
}

// The mean along the last axis, which stays with size 1.
bool is_row_mean(const Graph& graph, const NodeEntry& entry) {
  return is_first_of(entry, kMean) && bool_attribute(*entry.node, "keepdims", false) &&
         reduced_axis(graph, *entry.node) == graph.spec(before(entry)).shape.ndim() - 1;
}

// (x - mean(x)) / sqrt(mean(square(x - mean(x))) + eps)
struct Normalized {
  NodeEntry x;
  double eps;
};

std::optional<Normalized> normalized(const Graph& graph, const NodeEntry& centered, const NodeEntry& root,
                                     const Node& result) {
  const auto only_read = [&](const NodeEntry& entry) { return graph.only_reader(entry) != nullptr; };
  const NodeEntry& sum = before(root);
  if (!only_read(root) || !is_first_of(sum, kPlus) || !only_read(sum)) return std::nullopt;
  const NodeEntry& variance = before(sum);
  if (!is_row_mean(graph, variance) || !only_read(variance)) return std::nullopt;
  const NodeEntry& square = before(variance);
  if (!is_first_of(square, kSquare) || !only_read(square) || !(before(square) == centered)) return std::nullopt;
  if (!is_first_of(centered, kSubtract)) return std::nullopt;
  for (const Client& reader : graph.clients(centered))
    if (reader.node != square.node.get() && reader.node != &result) return std::nullopt;
  const NodeEntry &x = before(centered), &mean = centered.node->inputs[1];
  if (!is_row_mean(graph, mean) || !only_read(mean) || !(before(mean) == x)) return std::nullopt;
  const double eps = number_attribute(*sum.node, "scalar", -1);
  if (eps < 0 || !is_floating(result.specs[0].dtype) || !(graph.spec(x) == result.specs[0])) return std::nullopt;
  return Normalized{x, eps};
}

NodeEntry filled(Graph& graph, const OpRef& op, const TensorSpec& row, const Node& origin) {
  return emit(graph, op, {}, {{"shape", row.shape.str()}, {"dtype", dtype_name(row.dtype)}}, &origin);
}

bool is_full_of(const NodeEntry& entry, double number) {
  const Node& node = *entry.node;
  return !node.is_variable() && node.op->fills_with && node.op->fills_with(node.params->data()) == number;
}

// The LayerNorm along the last axis that only `reader` reads, or null.
const Node* layer_norm_before(const Graph& graph, const NodeEntry& entry, const Node& reader) {
  if (!is_first_of(entry, kLayerNorm) || graph.only_reader(entry) != &reader) return nullptr;
  const Node& norm = *entry.node;
  const int last = graph.spec(entry).shape.ndim() - 1;
  const double axis = number_attribute(norm, "axis", -1);
  if ((axis != -1 && axis != last) || graph.is_used(norm, 1) || graph.is_used(norm, 2)) return nullptr;
  return &norm;
}

// One number per column of the rows.
bool is_per_column(const Graph& graph, const NodeEntry& entry, const TensorSpec& rows) {
  const TensorSpec& spec = graph.spec(entry);
  const int ndim = spec.shape.ndim();
  return spec.dtype == rows.dtype && ndim > 0 && ndim <= rows.shape.ndim() &&
         spec.shape[ndim - 1] == rows.shape[rows.shape.ndim() - 1] && spec.shape.size(0, ndim - 1) == 1;
}

NodeEntry as_vector(Graph& graph, const NodeEntry& entry, const Node& origin) {
  return graph.spec(entry).shape.ndim() == 1 ? entry : emit(graph, kReshape, {entry}, {{"shape", "(-1,)"}}, &origin);
}

}  // namespace

Replacement layer_norm(Graph& graph, Node& node) {
  std::optional<Normalized> found;
  for (const size_t side : {0u, 1u}) {
    const NodeEntry &centered = node.inputs[side], &root = node.inputs[1 - side];
    const bool divides = node.op == &kDivide.op();
    if (divides && side == 1) break;
    const bool is_root =
        divides ? is_first_of(root, kSqrt) || is_power(root, 0.5) : is_first_of(root, kRsqrt) || is_power(root, -0.5);
    if (!found && is_root) found = normalized(graph, centered, root, node);
  }
  if (!found) return no_change();
  const TensorSpec& rows = node.specs[0];
  const TensorSpec row{Shape{rows.shape[rows.shape.ndim() - 1]}, rows.dtype};
  if (row.shape.size() == 0) return no_change();
  const NodePtr norm = graph.add(kLayerNorm.op(), make_params(kLayerNorm.op(), nullptr, {{"eps", found->eps}}),
                                 {found->x, filled(graph, kOnes, row, node), filled(graph, kZeros, row, node)}, &node);
  return replace_with({norm, 0});
}

// LayerNorm(x) * gamma + beta: the operator scales and shifts.
Replacement scale_layer_norm(Graph& graph, Node& node) {
  const bool scales = node.op == &kMultiply.op();
  for (const size_t side : {0u, 1u}) {
    const Node* norm = layer_norm_before(graph, node.inputs[side], node);
    const NodeEntry& other = node.inputs[1 - side];
    if (norm == nullptr || !(norm->specs[0] == node.specs[0]) || !is_per_column(graph, other, node.specs[0])) continue;
    if (!is_full_of(norm->inputs[2], 0) || (scales && !is_full_of(norm->inputs[1], 1))) continue;
    std::vector<NodeEntry> inputs = norm->inputs;
    inputs[scales ? 1 : 2] = as_vector(graph, other, node);
    return replace_with({graph.add(kLayerNorm.op(), norm->params, std::move(inputs), norm), 0});
  }
  return no_change();
}

}  // namespace hybridnet::passes
