// Binary arithmetic by its plain names: which operators compute `add`, `mul`, ... on equal shapes, with broadcasting,
// and with a number on one side. For patterns, and for rules that need not know which of them they want.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "hybridnet/mutable_graph.h"

namespace hybridnet {

struct Arithmetic {
  std::string_view name;
  std::string_view equal_shapes, broadcast;
  std::string_view number_right, number_left;  // empty: x + 2 and 2 + x are one operator
};
// Null: no such name.
const Arithmetic* find_arithmetic(std::string_view name);
const Arithmetic* arithmetic_of(const Op& op);  // null: the operator is none of these

// What an operator of a graph reads: an entry, or a number that is a parameter of the operator.
struct Operand {
  NodeEntry entry;
  std::optional<double> number;
  bool operator==(const Operand&) const = default;
};
// The operands of a node in order: `2 - x` reads 2, then x.
std::vector<Operand> operands_of(const Node& node);

// Adds `name` of two operands, of which one at least is an entry. Throws what inference throws.
NodePtr add_arithmetic(Graph& graph, const Arithmetic& arithmetic, const Operand& left, const Operand& right,
                       const Node* origin);

}  // namespace hybridnet
