#include "passes/layers/products.h"

#include <algorithm>
#include <optional>

#include "graph/arithmetic.h"
#include "passes/borders.h"
#include "passes/rules.h"

namespace hybridnet::passes {
namespace {

const Arithmetic& mul() { return *find_arithmetic("mul"); }
const Arithmetic& div() { return *find_arithmetic("div"); }

class Chain {
 public:
  Chain(const Graph& graph, DType dtype) : graph_(graph), dtype_(dtype) {}

  void add(const Node& node, bool under) {
    const bool divides = arithmetic_of(*node.op) == &div();
    const std::vector<Operand> operands = operands_of(node);
    ++product.nodes;
    product.divisions += divides && !operands[1].number;
    add(node, operands[0], under);
    add(node, operands[1], under != divides);
  }

  bool is_part(const Node& node) const {
    if (node.is_variable() || node.specs[0].dtype != dtype_) return false;
    const Arithmetic* arithmetic = arithmetic_of(*node.op);
    return (arithmetic == &mul() || arithmetic == &div()) &&
           std::all_of(node.inputs.begin(), node.inputs.end(),
                       [&](const NodeEntry& input) { return graph_.spec(input).dtype == dtype_; });
  }

  Product product;

 private:
  void add(const Node& reader, const Operand& operand, bool under) {
    if (operand.number) {
      ++product.numbers;
      product.number = under ? product.number / *operand.number : product.number * *operand.number;
    } else if (is_part(*operand.entry.node) && graph_.only_reader(operand.entry) == &reader) {
      add(*operand.entry.node, under);
    } else {
      (under ? product.under : product.over).push_back(operand.entry);
    }
  }

  const Graph& graph_;
  const DType dtype_;
};

// Multiplies the factors; nothing if there are none.
std::optional<NodeEntry> multiplied(Graph& graph, const std::vector<NodeEntry>& factors, const Node& origin) {
  std::optional<NodeEntry> result;
  for (const NodeEntry& factor : factors)
    result = result ? NodeEntry{add_arithmetic(graph, mul(), {*result, {}}, {factor, {}}, &origin), 0} : factor;
  return result;
}

// Writes the node as one product, one division and one number at most. No change if the shape would differ.
Replacement written(Graph& graph, Node& node, const Product& product) {
  std::optional<NodeEntry> over = multiplied(graph, product.over, node);
  const std::optional<NodeEntry> under = multiplied(graph, product.under, node);
  const Operand number{{}, product.number};
  if (over && product.number != 1) over = NodeEntry{add_arithmetic(graph, mul(), {*over, {}}, number, &node), 0};
  if (under) {
    const Operand left = over ? Operand{*over, {}} : number;
    over = NodeEntry{add_arithmetic(graph, div(), left, {*under, {}}, &node), 0};
  }
  if (!over || !(graph.spec(*over) == node.specs[0])) return no_change();
  return separates_borders(graph, node, *over) ? no_change() : replace_with(*over);
}

}  // namespace

Product product_of(const Graph& graph, const Node& root) {
  Chain chain(graph, root.specs[0].dtype);
  if (is_floating(root.specs[0].dtype) && chain.is_part(root)) chain.add(root, false);
  return chain.product;
}

// x * y / y is x.
Replacement cancel_factors(Graph& graph, Node& node) {
  Product product = product_of(graph, node);
  bool canceled = false;
  for (auto it = product.under.begin(); it != product.under.end();) {
    const auto twin = std::find(product.over.begin(), product.over.end(), *it);
    if (twin == product.over.end()) {
      ++it;
      continue;
    }
    product.over.erase(twin);
    it = product.under.erase(it);
    canceled = true;
  }
  return canceled ? written(graph, node, product) : no_change();
}

// A chain of products and quotients is one quotient at most, and has one number at most.
Replacement join_factors(Graph& graph, Node& node) {
  const Product product = product_of(graph, node);
  if (product.divisions < 2 && product.numbers < 2) return no_change();
  if (product.number == 0 || !(product.number - product.number == 0)) return no_change();  // 0, infinite, NaN
  return written(graph, node, product);
}

}  // namespace hybridnet::passes
