// Binary arithmetic by its plain names: the operators that compute `add`, `mul`, ... on equal shapes, with
// broadcasting, and with a number on one side. For patterns, and for rules to which all of these are the same.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "hybridnet/mutable_graph.h"

namespace hybridnet {

struct Arithmetic {
  std::string_view name;
  std::string_view equal_shapes, broadcast;
  std::string_view number_right, number_left;  // number_left is empty if x + 2 and 2 + x are one operator
  std::string_view of_gradients = {};          // another operator on equal shapes, for sums of gradients; may be empty

  bool is_commutative() const { return number_left.empty(); }
  std::vector<std::string_view> operators() const;  // all of them, each once
};
// Returns null for an unknown name.
const Arithmetic* find_arithmetic(std::string_view name);
const Arithmetic* arithmetic_of(const Op& op);  // null: the operator is not in the table
// True for the result of this arithmetic ("sub") on two arrays.
bool is_of_arrays(const NodeEntry& entry, std::string_view arithmetic);

// An operand of an operator in a graph: an entry, or a number that is a parameter of the operator.
struct Operand {
  NodeEntry entry;
  std::optional<double> number;
  bool operator==(const Operand&) const = default;
};
// Returns the operands of a node in order: for `2 - x` first 2, then x.
std::vector<Operand> operands_of(const Node& node);

// Adds a node that applies `arithmetic` to two operands, at least one of them an entry. Errors of inference pass.
NodePtr add_arithmetic(Graph& graph, const Arithmetic& arithmetic, const Operand& left, const Operand& right,
                       const Node* origin);

}  // namespace hybridnet
