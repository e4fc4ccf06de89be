// Nodes that gradients of loops and branches are made of.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "hybridnet/pass.h"

namespace hybridnet {

using TextAttrs = std::vector<std::pair<std::string, std::string>>;

// origin: the node whose name and place the new one gets; may be null.
NodeEntry emit(Graph& graph, const OpRef& op, std::vector<NodeEntry> inputs, const TextAttrs& attrs,
               const Node* origin);
NodeEntry zeros(Graph& graph, const TensorSpec& spec, const Node* origin);
NodeEntry reshaped(Graph& graph, const NodeEntry& entry, const Shape& shape, const Node* origin);
// Null is zero.
NodeEntry sum(Graph& graph, const NodeEntry& a, const NodeEntry& b, const Node* origin);

// The entry whose elements a chain of views shows.
NodeEntry behind_views(NodeEntry entry);

// A body of the node, rewritten as far as before differentiation.
Graph prepared_body(const Graph& graph, const Node& node, size_t body);

// Puts a node with more outputs in node's place. new_index: per old output its number in the new node.
NodePtr replace_node(Graph& graph, Node& node, ParamsPtr params, std::vector<NodeEntry> inputs,
                     std::vector<Ref<Subgraph>> bodies, const std::vector<uint32_t>& new_index, EntryMap& replaced);

}  // namespace hybridnet
