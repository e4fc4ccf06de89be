// Operator parameters by name, so that passes need not know the operators' structs.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hybridnet/graph.h"

namespace hybridnet::passes {

// The value of a parameter; None when the op has no such parameter.
AttrValue attribute(const Node& node, std::string_view name);
double number_attribute(const Node& node, std::string_view name, double otherwise);
int64_t integer_attribute(const Node& node, std::string_view name, int64_t otherwise);  // for integer parameters
bool bool_attribute(const Node& node, std::string_view name, bool otherwise);
std::string text_attribute(const Node& node, std::string_view name);  // "" when absent or None
// True if the entry is the first output of this operator.
inline bool is_first_of(const NodeEntry& entry, const OpRef& op) {
  return !entry.node->is_variable() && entry.index == 0 && entry.node->op == &op.op();
}

// Parameters of `op`: fields that it shares with `from` (may be null) by name, then `attrs`.
ParamsPtr make_params(const Op& op, const Node* from, const std::vector<std::pair<std::string, AttrValue>>& attrs);

}  // namespace hybridnet::passes
