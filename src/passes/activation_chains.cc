// Activations written out, as one operator, which layers take along.
#include <cmath>
#include <numbers>

#include "passes/attributes.h"
#include "passes/gradient_nodes.h"
#include "passes/products.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

const OpRef kErf{"erf"}, kPlus{"_plus_scalar"}, kMultiply{"_mul_scalar"}, kDivide{"_div_scalar"},
    kPlainLeakyRelu{"_plain_leaky_relu"};

const NodeEntry& before(const NodeEntry& entry) { return entry.node->inputs[0]; }

bool is_near(double a, double b) { return std::abs(a - b) <= 1e-6 * std::abs(b); }

// x / sqrt(2)
bool is_by_root_of_two(const NodeEntry& entry, const NodeEntry& x) {
  const bool multiplied = is_first_of(entry, kMultiply);
  if ((!multiplied && !is_first_of(entry, kDivide)) || !(before(entry) == x)) return false;
  return is_near(number_attribute(*entry.node, "scalar", 0),
                 multiplied ? 1 / std::numbers::sqrt2 : std::numbers::sqrt2);
}

// 1 + erf(x / sqrt(2)), which nothing else reads.
bool is_twice_normal_distribution(const Graph& graph, const NodeEntry& entry, const NodeEntry& x) {
  const auto only_read = [&](const NodeEntry& e) { return graph.only_reader(e) != nullptr; };
  if (!is_first_of(entry, kPlus) || number_attribute(*entry.node, "scalar", 0) != 1 || !only_read(entry)) return false;
  const NodeEntry& erf = before(entry);
  return is_first_of(erf, kErf) && only_read(erf) && is_by_root_of_two(before(erf), x) && only_read(before(erf));
}

}  // namespace

// x / 2 * (1 + erf(x / sqrt(2))), its factors in any order. The form with tanh is another function.
Replacement gelu(Graph& graph, Node& node) {
  const Product product = product_of(graph, node);
  if (product.over.size() != 2 || !product.under.empty() || product.number != 0.5) return no_change();
  for (const size_t side : {0u, 1u}) {
    const NodeEntry& x = product.over[side];
    if (!is_twice_normal_distribution(graph, product.over[1 - side], x) || !(graph.spec(x) == node.specs[0])) continue;
    return replace_with(emit(graph, kPlainLeakyRelu, {x}, {{"act_type", "gelu"}}, &node));
  }
  return no_change();
}

}  // namespace hybridnet::passes
