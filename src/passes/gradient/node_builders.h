// Helpers to build the gradients of loops and branches.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "hybridnet/pass.h"

namespace hybridnet {

using TextAttrs = std::vector<std::pair<std::string, std::string>>;

// origin: the new node takes its name and place; may be null.
NodeEntry emit(Graph& graph, const OpRef& op, std::vector<NodeEntry> inputs, const TextAttrs& attrs,
               const Node* origin);
NodeEntry zeros(Graph& graph, const TensorSpec& spec, const Node* origin);
NodeEntry reshaped(Graph& graph, const NodeEntry& entry, const Shape& shape, const Node* origin);
// A null operand is zero.
NodeEntry sum(Graph& graph, const NodeEntry& a, const NodeEntry& b, const Node* origin);

// Returns the entry under a chain of views.
NodeEntry behind_views(NodeEntry entry);

// Returns a body of the node after the stages before differentiation.
Graph prepared_body(const Graph& graph, const Node& node, size_t body);

// Replaces `node` by one with more outputs. new_index: the new number of each old output.
NodePtr replace_node(Graph& graph, Node& node, ParamsPtr params, std::vector<NodeEntry> inputs,
                     std::vector<Ref<Subgraph>> bodies, const std::vector<uint32_t>& new_index, EntryMap& replaced);

}  // namespace hybridnet
