// Replaces normalization that is written out by one operator: one pass over memory instead of eight, and a gradient of
// its own.
#include "graph/reduced_axes.h"
#include "passes/attributes.h"
#include "passes/gradient/node_builders.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

const OpRef kLayerNorm{"LayerNorm"}, kRmsNorm{"_contrib_rms_norm"}, kMean{"mean"}, kSquare{"square"}, kSqrt{"sqrt"},
    kRsqrt{"rsqrt"}, kPlus{"_plus_scalar"}, kPower{"_power_scalar"}, kSubtract{"broadcast_sub"},
    kDivide{"broadcast_div"}, kMultiply{"broadcast_mul"}, kAdd{"broadcast_add"}, kOnes{"_ones"}, kZeros{"_zeros"},
    kReshape{"Reshape"};

const NodeEntry& before(const NodeEntry& entry) { return entry.node->inputs[0]; }

bool is_power(const NodeEntry& entry, double exponent) {
  return is_first_of(entry, kPower) && number_attribute(*entry.node, "scalar", exponent + 1) == exponent;
}

// True for the mean along the last axis, which stays with size 1.
bool is_row_mean(const Graph& graph, const NodeEntry& entry) {
  return is_first_of(entry, kMean) && bool_attribute(*entry.node, "keepdims", false) &&
         reduced_axis(graph, *entry.node) == graph.spec(before(entry)).shape.ndim() - 1;
}

// sqrt(mean(square(of)) + eps) or its inverse, along the last axis, if each value has one reader.
struct Root {
  NodeEntry of;
  double eps;
  const Node* square;
};

std::optional<Root> root_of_mean_square(const Graph& graph, const NodeEntry& root) {
  const auto only_read = [&](const NodeEntry& entry) { return graph.only_reader(entry) != nullptr; };
  const NodeEntry& sum = before(root);
  if (!only_read(root) || !is_first_of(sum, kPlus) || !only_read(sum)) return std::nullopt;
  const NodeEntry& average = before(sum);
  if (!is_row_mean(graph, average) || !only_read(average)) return std::nullopt;
  const NodeEntry& square = before(average);
  if (!is_first_of(square, kSquare) || !only_read(square)) return std::nullopt;
  const double eps = number_attribute(*sum.node, "scalar", -1);
  if (eps < 0 || !is_floating(graph.spec(root).dtype)) return std::nullopt;
  return Root{before(square), eps, square.node.get()};
}

// The factor or dividend `over` that meets a root of mean squares in a product or quotient.
struct Quotient {
  NodeEntry over;
  Root root;
};

std::optional<Quotient> quotient_by_root(const Graph& graph, const Node& node) {
  const bool divides = node.op == &kDivide.op();
  for (const size_t side : {0u, 1u}) {
    if (divides && side == 1) break;
    const NodeEntry& root = node.inputs[1 - side];
    const bool is_root =
        divides ? is_first_of(root, kSqrt) || is_power(root, 0.5) : is_first_of(root, kRsqrt) || is_power(root, -0.5);
    if (!is_root) continue;
    if (const std::optional<Root> found = root_of_mean_square(graph, root)) return Quotient{node.inputs[side], *found};
  }
  return std::nullopt;
}

// The x of x - mean(x) if only `square` and `result` read the difference.
std::optional<NodeEntry> before_centering(const Graph& graph, const NodeEntry& centered, const Node& square,
                                          const Node& result) {
  if (!is_first_of(centered, kSubtract)) return std::nullopt;
  for (const Client& reader : graph.clients(centered))
    if (reader.node != &square && reader.node != &result) return std::nullopt;
  const NodeEntry &x = before(centered), &mean = centered.node->inputs[1];
  if (!is_row_mean(graph, mean) || graph.only_reader(mean) == nullptr || !(before(mean) == x)) return std::nullopt;
  return x;
}

NodeEntry filled(Graph& graph, const OpRef& op, const TensorSpec& row, const Node& origin) {
  return emit(graph, op, {}, {{"shape", row.shape.str()}, {"dtype", dtype_name(row.dtype)}}, &origin);
}

bool is_full_of(const NodeEntry& entry, double number) {
  const Node& node = *entry.node;
  return !node.is_variable() && node.op->fills_with && node.op->fills_with(node.params->data()) == number;
}

// The normalization along the last axis at `entry` if only `reader` reads it, or null.
const Node* norm_before(const Graph& graph, const OpRef& op, const NodeEntry& entry, const Node& reader) {
  if (!is_first_of(entry, op) || graph.only_reader(entry) != &reader) return nullptr;
  const Node& norm = *entry.node;
  const int last = graph.spec(entry).shape.ndim() - 1;
  const double axis = number_attribute(norm, "axis", -1);
  if (axis != -1 && axis != last) return nullptr;
  for (size_t i = 1; i < norm.specs.size(); ++i)
    if (graph.is_used(norm, static_cast<int>(i))) return nullptr;
  return &norm;
}

// True for one number per column of the rows.
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

// (x - mean(x)) / sqrt(mean(square(x - mean(x))) + eps)
Replacement layer_norm(Graph& graph, Node& node) {
  const std::optional<Quotient> found = quotient_by_root(graph, node);
  if (!found || !(found->over == found->root.of)) return no_change();
  const std::optional<NodeEntry> x = before_centering(graph, found->over, *found->root.square, node);
  const TensorSpec& rows = node.specs[0];
  if (!x || !(graph.spec(*x) == rows)) return no_change();
  const TensorSpec row{Shape{rows.shape[rows.shape.ndim() - 1]}, rows.dtype};
  if (row.shape.size() == 0) return no_change();
  const NodePtr norm = graph.add(kLayerNorm.op(), make_params(kLayerNorm.op(), nullptr, {{"eps", found->root.eps}}),
                                 {*x, filled(graph, kOnes, row, node), filled(graph, kZeros, row, node)}, &node);
  return replace_with({norm, 0});
}

// x / sqrt(mean(square(x)) + eps), also with x * gamma above the root.
Replacement rms_norm(Graph& graph, Node& node) {
  const std::optional<Quotient> found = quotient_by_root(graph, node);
  if (!found) return no_change();
  const NodeEntry& x = found->root.of;
  const TensorSpec& rows = node.specs[0];
  if (!(graph.spec(x) == rows)) return no_change();
  const TensorSpec row{Shape{rows.shape[rows.shape.ndim() - 1]}, rows.dtype};
  if (row.shape.size() == 0) return no_change();
  std::optional<NodeEntry> gamma;
  if (found->over == x) {
    gamma = filled(graph, kOnes, row, node);
  } else if (is_first_of(found->over, kMultiply) && graph.only_reader(found->over) == &node) {
    for (const size_t side : {0u, 1u}) {
      const NodeEntry& other = found->over.node->inputs[1 - side];
      if (found->over.node->inputs[side] == x && is_per_column(graph, other, rows))
        gamma = as_vector(graph, other, node);
    }
  }
  if (!gamma) return no_change();
  return replace_with(
      {graph.add(kRmsNorm.op(), make_params(kRmsNorm.op(), nullptr, {{"eps", found->root.eps}}), {x, *gamma}, &node),
       0});
}

// rms_norm(x) * gamma: the operator scales itself.
Replacement scale_rms_norm(Graph& graph, Node& node) {
  for (const size_t side : {0u, 1u}) {
    const Node* norm = norm_before(graph, kRmsNorm, node.inputs[side], node);
    const NodeEntry& other = node.inputs[1 - side];
    if (norm == nullptr || !(norm->specs[0] == node.specs[0]) || !is_per_column(graph, other, node.specs[0])) continue;
    if (!is_full_of(norm->inputs[1], 1)) continue;
    return replace_with(
        {graph.add(kRmsNorm.op(), norm->params, {norm->inputs[0], as_vector(graph, other, node)}, norm), 0});
  }
  return no_change();
}

// LayerNorm(x) * gamma + beta: the operator scales and shifts itself.
Replacement scale_layer_norm(Graph& graph, Node& node) {
  const bool scales = node.op == &kMultiply.op();
  for (const size_t side : {0u, 1u}) {
    const Node* norm = norm_before(graph, kLayerNorm, node.inputs[side], node);
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
