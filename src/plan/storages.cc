#include "plan/storages.h"

#include <algorithm>
#include <unordered_set>

#include "sparse/operators.h"

namespace hybridnet {
namespace {

std::vector<StorageType> storages_of(const GraphStorages& known, const Node& node) {
  std::vector<StorageType> storages;
  for (const NodeEntry& input : node.inputs) storages.push_back(known.of(input));
  return storages;
}

NodeEntry first_output(const Node& node) { return {NodePtr(const_cast<Node*>(&node)), 0}; }

// Returns the input whose gradient consists of rows; -1: none.
int input_with_rows(const Node& node, std::span<const StorageType> storages, bool output_gradient_by_rows) {
  const SparseUse use{*node.op, node.params, storages};
  const auto has_form = [&] { return sparse_form(*node.op, node.params, storages).has_value(); };
  switch (node.op->sparse.form) {
    case SparseForm::kEmbedding:
      return use.flag("sparse_grad") ? 1 : -1;
    case SparseForm::kDot:
      return storages[0] == StorageType::kCsr && !use.flag("transpose_a") && has_form() ? 1 : -1;
    case SparseForm::kSquareSums:
      return output_gradient_by_rows && storages[0] == StorageType::kRowSparse && has_form() ? 0 : -1;
    default:
      return -1;
  }
}

}  // namespace

StorageType GraphStorages::of(const NodeEntry& entry) const {
  const auto found = sparse.find(entry);
  return found == sparse.end() ? StorageType::kDefault : found->second;
}

GraphStorages infer_storages(const GraphDefinition& graph, std::span<const StorageType> inputs,
                             const std::function<bool(const Node&)>& reads_dense) {
  GraphStorages known;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i] != StorageType::kDefault) known.sparse[{graph.inputs[i], 0}] = inputs[i];
  for (const Node* node : topological_order(graph.outputs)) {
    if (node->is_variable() || !node->subgraphs.empty() || reads_dense(*node)) continue;
    const std::optional<StorageType> form = sparse_form(*node->op, node->params, storages_of(known, *node));
    if (!form) continue;
    known.have_form.insert(node);
    if (*form != StorageType::kDefault) known.sparse[first_output(*node)] = *form;
  }
  return known;
}

std::vector<bool> gradients_by_rows(const GraphDefinition& graph, std::span<const StorageType> inputs) {
  const GraphStorages known = infer_storages(graph, inputs, [](const Node&) { return false; });
  std::unordered_set<NodeEntry, NodeEntryHash> by_rows, dense;
  for (const NodeEntry& output : graph.outputs) dense.insert(output);
  const auto all_by_rows = [&](const NodeEntry& entry) { return by_rows.count(entry) != 0 && dense.count(entry) == 0; };
  const std::vector<Node*> order = topological_order(graph.outputs);
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    const Node& node = **it;
    if (node.is_variable()) continue;
    const int with_rows = input_with_rows(node, storages_of(known, node), all_by_rows(first_output(node)));
    for (size_t i = 0; i < node.inputs.size(); ++i)
      (static_cast<int>(i) == with_rows ? by_rows : dense).insert(node.inputs[i]);
  }
  std::vector<bool> result;
  for (const NodePtr& input : graph.inputs) result.push_back(all_by_rows({input, 0}));
  return result;
}

}  // namespace hybridnet
