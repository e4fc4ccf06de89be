// Folds the transposes, the factor and the summand around a matrix product into the product itself.
#include <algorithm>
#include <cmath>
#include <optional>

#include "passes/attributes.h"
#include "passes/control/size_questions.h"
#include "passes/gradient/node_builders.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

const OpRef kDot{"dot"}, kBatchDot{"batch_dot"}, kDense{"FullyConnected"}, kTranspose{"transpose"},
    kSwapAxis{"SwapAxis"}, kMultiply{"_mul_scalar"}, kAdd{"broadcast_add"}, kScaled{"_scaled_product"};

constexpr const char* kFlags[] = {"transpose_a", "transpose_b"};

// True for dot of two matrices, and for batch_dot.
bool is_product(const Graph& graph, const Node& node) {
  if (node.is_variable()) return false;
  if (node.op == &kBatchDot.op()) return true;
  if (node.op != &kDot.op()) return false;
  return std::all_of(node.inputs.begin(), node.inputs.end(),
                     [&](const NodeEntry& input) { return graph.spec(input).shape.ndim() == 2; });
}

// Returns the source of an entry that swaps the last two axes and keeps the axes in front of them; nothing for others.
std::optional<NodeEntry> transposed_matrices(const Graph& graph, const NodeEntry& entry) {
  const int ndim = graph.spec(entry).shape.ndim();
  if (ndim < 2) return std::nullopt;
  const auto from_front = [&](int64_t axis) { return axis < 0 ? axis + ndim : axis; };
  const Node& node = *entry.node;
  if (is_first_of(entry, kSwapAxis)) {
    const auto axis = [&](const char* name) { return from_front(integer_attribute(node, name, 0)); };
    if (std::minmax({axis("dim1"), axis("dim2")}) != std::pair<int64_t, int64_t>(ndim - 2, ndim - 1))
      return std::nullopt;
    return node.inputs[0];
  }
  if (!is_first_of(entry, kTranspose)) return std::nullopt;
  const AttrValue given = attribute(node, "axes");
  const auto* list = std::get_if<AttrValue::List>(&given.value);
  if (list == nullptr || list->empty()) return ndim == 2 ? std::optional(node.inputs[0]) : std::nullopt;
  for (int i = 0; i < ndim; ++i) {
    const auto* axis = std::get_if<int64_t>(&(*list)[static_cast<size_t>(i)].value);
    if (axis == nullptr || from_front(*axis) != (i < ndim - 2 ? i : 2 * ndim - 3 - i)) return std::nullopt;
  }
  return node.inputs[0];
}

// True for a dense layer on a matrix without bias, or with so few rows that a separate pass to add the bias takes less
// time than to transpose the weight.
bool may_become_product(const Graph& graph, const Node& dense) {
  const Shape& data = graph.spec(dense.inputs[0]).shape;
  if (data.ndim() != 2) return false;
  const auto has_few_rows = [](std::span<const Shape> shapes) { return shapes[0][0] <= 2 * shapes[0][1]; };
  return dense.inputs.size() == 2 || (graph.spec(dense.inputs[2]).shape.ndim() == 1 && ask_sizes({data}, has_few_rows));
}

// True if each reader can read the matrices before the transpose; otherwise the copy is made anyway.
bool is_read_by_products_only(const Graph& graph, const NodeEntry& transposed) {
  const std::vector<Client>& readers = graph.clients(transposed);
  return std::all_of(readers.begin(), readers.end(), [&](const Client& reader) {
    if (reader.node == nullptr) return false;
    const Node& node = *reader.node;
    if (node.is_variable()) return false;
    if (node.op == &kDense.op())
      return node.inputs[1] == transposed && !(node.inputs[0] == transposed) && may_become_product(graph, node);
    return is_product(graph, node);
  });
}

bool flag(const Node& product, size_t side) { return bool_attribute(product, kFlags[side], false); }

NodeEntry with_flags(Graph& graph, const Node& product, bool a, bool b, std::vector<NodeEntry> inputs,
                     const Node& origin) {
  ParamsPtr params = make_params(*product.op, &product, {{kFlags[0], a}, {kFlags[1], b}});
  return {graph.add(*product.op, std::move(params), std::move(inputs), &origin), 0};
}

// data transpose(w)^T is data w.
Replacement dense_of_transposed(Graph& graph, Node& dense) {
  const std::optional<NodeEntry> weight = transposed_matrices(graph, dense.inputs[1]);
  if (!weight || !may_become_product(graph, dense) || !is_read_by_products_only(graph, dense.inputs[1]))
    return no_change();
  const NodeEntry product = emit(graph, kDot, {dense.inputs[0], *weight}, {}, &dense);
  return replace_with(dense.inputs.size() == 2 ? product : emit(graph, kAdd, {product, dense.inputs[2]}, {}, &dense));
}

// Returns the product at `entry` if _scaled_product can express it and `reader` is its only reader; null otherwise.
const Node* scalable(const Graph& graph, const NodeEntry& entry, const Node& reader) {
  if (entry.index != 0 || graph.only_reader(entry) != &reader || !(graph.spec(entry) == reader.specs[0]))
    return nullptr;
  const DType dtype = graph.spec(entry).dtype;
  if (dtype != DType::kFloat32 && dtype != DType::kFloat64) return nullptr;
  const Node& node = *entry.node;
  const bool is_scaled = is_first_of(entry, kScaled) && !bool_attribute(node, "with_addend", false);
  return is_scaled || is_product(graph, node) ? &node : nullptr;
}

// OpenBLAS computes smaller products and would need a copy of the summand first: as slow as a separate pass (measured).
bool pays_addend(const Graph& graph, const Node& product) {
  if (product.specs[0].dtype != DType::kFloat32) return false;
  const bool transposed = flag(product, 0);
  return ask_sizes(
      {product.specs[0].shape, graph.spec(product.inputs[0]).shape}, [transposed](std::span<const Shape> shapes) {
        constexpr int64_t kMinRows = 32, kMinWork = 32 * 32 * 32;
        const Shape &out = shapes[0], &a = shapes[1];
        return out[out.ndim() - 2] >= kMinRows && out.size() * a[a.ndim() - (transposed ? 2 : 1)] >= kMinWork;
      });
}

}  // namespace

// Replaces transposes of the operands by flags of the product.
Replacement transposed_operands(Graph& graph, Node& node) {
  if (node.op == &kDense.op()) return dense_of_transposed(graph, node);
  if (!is_product(graph, node)) return no_change();
  std::vector<NodeEntry> inputs = node.inputs;
  bool flags[] = {flag(node, 0), flag(node, 1)}, changed = false;
  for (const size_t side : {0u, 1u}) {
    const std::optional<NodeEntry> source = transposed_matrices(graph, inputs[side]);
    if (!source || !is_read_by_products_only(graph, inputs[side])) continue;
    inputs[side] = *source;
    flags[side] = !flags[side];
    changed = true;
  }
  if (!changed) return no_change();
  return replace_with(with_flags(graph, node, flags[0], flags[1], std::move(inputs), node));
}

// (a b)^T is b^T a^T.
Replacement transposed_product(Graph& graph, Node& node) {
  const std::optional<NodeEntry> source = transposed_matrices(graph, {NodePtr(&node), 0});
  if (!source || source->index != 0 || graph.only_reader(*source) != &node || !is_product(graph, *source->node))
    return no_change();
  const Node& product = *source->node;
  return replace_with(
      with_flags(graph, product, !flag(product, 1), !flag(product, 0), {product.inputs[1], product.inputs[0]}, node));
}

// (a b) * number
Replacement scaled_product(Graph& graph, Node& node) {
  const Node* product = scalable(graph, node.inputs[0], node);
  if (product == nullptr) return no_change();
  const double number = number_attribute(node, "scalar", 0);
  const double factor = (node.op == &kMultiply.op() ? number : 1 / number) * number_attribute(*product, "alpha", 1);
  // Products with the factor 0 are not computed: 0 * NaN would become 0.
  if (!std::isfinite(factor) || factor == 0 || !std::isnormal(static_cast<float>(factor))) return no_change();
  return replace_with(
      {graph.add(kScaled.op(), make_params(kScaled.op(), product, {{"alpha", factor}}), product->inputs, &node), 0});
}

// a b + c: the product adds c while its result is in registers.
Replacement product_plus(Graph& graph, Node& node) {
  if (node.inputs.size() != 2) return no_change();  // c is a number
  for (const size_t side : {0u, 1u}) {
    const Node* product = scalable(graph, node.inputs[side], node);
    const NodeEntry& other = node.inputs[1 - side];
    if (product == nullptr || !(graph.spec(other) == node.specs[0]) || !pays_addend(graph, *product)) continue;
    std::vector<NodeEntry> inputs = product->inputs;
    inputs.push_back(other);
    return replace_with(
        {graph.add(kScaled.op(), make_params(kScaled.op(), product, {{"with_addend", true}}), std::move(inputs), &node),
         0});
  }
  return no_change();
}

}  // namespace hybridnet::passes
