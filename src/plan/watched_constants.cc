#include "plan/watched_constants.h"

#include <unordered_set>

namespace hybridnet {
namespace {

void collect(const std::vector<NodeEntry>& roots, std::unordered_set<const Node*>& met, std::vector<NDArray>& found) {
  for (const Node* node : topological_order(roots)) {
    if (!met.insert(node).second) continue;
    if (node->constant) found.emplace_back(Ref<ArrayImpl>(static_cast<ArrayImpl*>(node->constant.get())));
    for (const Ref<Subgraph>& body : node->subgraphs) collect(body->outputs, met, found);
  }
}

}  // namespace

WatchedConstants::WatchedConstants(const GraphDefinition& definition) {
  std::unordered_set<const Node*> met;
  for (const NodePtr& input : definition.inputs) met.insert(input.get());  // their values come with the call
  std::vector<NDArray> found;
  collect(definition.roots(), met, found);
  std::vector<NDArray> dense;
  for (const NDArray& array : found) (array.is_sparse() ? sparse_ : dense).push_back(array);
  for (const NDArray& array : dense) constants_.emplace_back(array, WatchedArray::Compared::kSmall);
  if (!dense.empty()) arrays_ = std::make_shared<const std::vector<NDArray>>(std::move(dense));
}

void WatchedConstants::wait() const {
  for (const WatchedArray& constant : constants_) constant.array().wait_to_read();
  for (const NDArray& array : sparse_) array.wait_to_read();
}

bool WatchedConstants::have_changed() {
  bool changed = false;
  for (WatchedArray& constant : constants_) changed |= constant.has_changed();
  return changed;
}

}  // namespace hybridnet
