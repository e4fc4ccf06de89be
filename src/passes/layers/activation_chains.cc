// Replaces activations that are written out in elementary operators by one operator, which layers can fuse.
#include <cmath>
#include <numbers>

#include "graph/arithmetic.h"
#include "passes/attributes.h"
#include "passes/gradient/node_builders.h"
#include "passes/layers/products.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

const OpRef kErf{"erf"}, kPlus{"_plus_scalar"}, kMultiply{"_mul_scalar"}, kDivide{"_div_scalar"},
    kPlainLeakyRelu{"_plain_leaky_relu"}, kTanh{"tanh"}, kActivation{"Activation"}, kSquare{"square"},
    kPower{"_power_scalar"}, kGeluTanh{"_gelu_tanh"};

const NodeEntry& before(const NodeEntry& entry) { return entry.node->inputs[0]; }

bool is_near(double a, double b) { return std::abs(a - b) <= 1e-6 * std::abs(b); }

// x / sqrt(2)
bool is_by_root_of_two(const NodeEntry& entry, const NodeEntry& x) {
  const bool multiplied = is_first_of(entry, kMultiply);
  if ((!multiplied && !is_first_of(entry, kDivide)) || !(before(entry) == x)) return false;
  return is_near(number_attribute(*entry.node, "scalar", 0),
                 multiplied ? 1 / std::numbers::sqrt2 : std::numbers::sqrt2);
}

// True for 1 + erf(x / sqrt(2)) if nothing else reads it.
bool is_twice_normal_distribution(const Graph& graph, const NodeEntry& entry, const NodeEntry& x) {
  const auto only_read = [&](const NodeEntry& e) { return graph.only_reader(e) != nullptr; };
  if (!is_first_of(entry, kPlus) || number_attribute(*entry.node, "scalar", 0) != 1 || !only_read(entry)) return false;
  const NodeEntry& erf = before(entry);
  return is_first_of(erf, kErf) && only_read(erf) && is_by_root_of_two(before(erf), x) && only_read(before(erf));
}

bool is_plus_one(const NodeEntry& entry) {
  return is_first_of(entry, kPlus) && number_attribute(*entry.node, "scalar", 0) == 1;
}

bool is_tanh(const NodeEntry& entry) {
  return is_first_of(entry, kTanh) ||
         (is_first_of(entry, kActivation) && text_attribute(*entry.node, "act_type") == "tanh");
}

// number * x^power and nothing else.
bool is_power_of(const Product& product, double number, int power, const NodeEntry& x) {
  int found = 0;
  for (const NodeEntry& factor : product.over) {
    if (factor == x) {
      ++found;
    } else if (is_first_of(factor, kSquare) && before(factor) == x) {
      found += 2;
    } else if (is_first_of(factor, kPower) && before(factor) == x && number_attribute(*factor.node, "scalar", 0) == 3) {
      found += 3;
    } else {
      return false;
    }
  }
  return found == power && product.under.empty() && is_near(product.number, number);
}

// sqrt(2 / pi) * (x + 0.044715 x^3), also with x taken out of the brackets.
bool is_gelu_argument(const Graph& graph, const NodeEntry& entry, const NodeEntry& x) {
  constexpr double kSqrtTwoOverPi = 0.79788456080286535588, kCubic = 0.044715;
  if (entry.node->is_variable()) return false;
  const Product outer = product_of(graph, *entry.node);
  if (!outer.under.empty() || !is_near(outer.number, kSqrtTwoOverPi)) return false;
  const auto product_only_read = [&](const NodeEntry& e) {
    return !e.node->is_variable() && graph.only_reader(e) != nullptr ? product_of(graph, *e.node) : Product{};
  };
  for (const NodeEntry& sum : outer.over) {
    if (sum.node->is_variable() || graph.only_reader(sum) == nullptr) continue;
    if (outer.over.size() == 1 && is_of_arrays(sum, "add")) {
      for (const size_t side : {0u, 1u})
        if (sum.node->inputs[side] == x && is_power_of(product_only_read(sum.node->inputs[1 - side]), kCubic, 3, x))
          return true;
    }
    if (outer.over.size() == 2 && is_plus_one(sum) && outer.over[outer.over[0] == sum ? 1 : 0] == x &&
        is_power_of(product_only_read(before(sum)), kCubic, 2, x))
      return true;
  }
  return false;
}

}  // namespace

// x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))), its factors in any order.
Replacement gelu_tanh(Graph& graph, Node& node) {
  const Product product = product_of(graph, node);
  if (product.over.size() != 2 || !product.under.empty() || product.number != 0.5) return no_change();
  for (const size_t side : {0u, 1u}) {
    const NodeEntry &x = product.over[side], &grown = product.over[1 - side];
    if (!is_plus_one(grown) || graph.only_reader(grown) == nullptr || !(graph.spec(x) == node.specs[0])) continue;
    const NodeEntry& bent = before(grown);
    if (!is_tanh(bent) || graph.only_reader(bent) == nullptr) continue;
    if (graph.only_reader(before(bent)) == nullptr || !is_gelu_argument(graph, before(bent), x)) continue;
    return replace_with(emit(graph, kGeluTanh, {x}, {}, &node));
  }
  return no_change();
}

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
