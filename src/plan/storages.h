// Infers which values of a graph may be sparse, from the storages of its inputs and the sparse forms of
// its operators (sparse/operators.h).
#pragma once

#include <functional>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "plan/compilation.h"

namespace hybridnet {

struct GraphStorages {
  // Values that may be sparse; all others are dense.
  std::unordered_map<NodeEntry, StorageType, NodeEntryHash> sparse;
  // Nodes that read sparse arrays without dense copies, or make sparse arrays.
  std::set<const Node*> have_form;

  StorageType of(const NodeEntry& entry) const;
};

// inputs: storages of the graph's inputs, in their order; empty: all dense. Subgraphs, and nodes for which
// `reads_dense` is true, have no form.
GraphStorages infer_storages(const GraphDefinition& graph, std::span<const StorageType> inputs,
                             const std::function<bool(const Node&)>& reads_dense);

// Per input of the graph: true if all its uses give it gradients of some rows only. Examples are tables of
// Embedding(sparse_grad=True), and weights of products with csr matrices.
std::vector<bool> gradients_by_rows(const GraphDefinition& graph, std::span<const StorageType> inputs);

}  // namespace hybridnet
