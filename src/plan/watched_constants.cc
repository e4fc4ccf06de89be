#include "plan/watched_constants.h"

#include <cstring>
#include <unordered_set>

#include "ndarray/given_out.h"

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

WatchedConstants::Watched::Watched(const NDArray& a)
    : array(a), overwrites(a.impl()->chunk->owner().overwrites.load(std::memory_order_relaxed)) {}

bool WatchedConstants::Watched::has_changed() {
  Chunk& chunk = array.impl()->chunk->owner();
  if (const uint64_t now = chunk.overwrites.load(std::memory_order_relaxed);
      overwrites.load(std::memory_order_relaxed) != now)
    return overwrites.exchange(now, std::memory_order_relaxed) != now;
  if (!chunk.is_foreign() || may_change_unseen(array)) return false;
  if (is_compared.test_and_set(std::memory_order_acquire)) return false;  // another thread will say
  array.wait_to_read();
  const auto bytes = static_cast<size_t>(array.bytes());
  const bool is_first = values.empty() && bytes > 0;
  const bool is_same = !is_first && (bytes == 0 || std::memcmp(values.data(), array.data(), bytes) == 0);
  if (!is_same) {
    const auto* const data = static_cast<const char*>(array.data());
    values.assign(data, data + bytes);
    overwrites.store(chunk.overwrites.fetch_add(1, std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  is_compared.clear(std::memory_order_release);
  return !is_same;
}

WatchedConstants::WatchedConstants(const GraphDefinition& definition) {
  std::unordered_set<const Node*> met;
  for (const NodePtr& input : definition.inputs) met.insert(input.get());  // their values come with the call
  std::vector<NDArray> found;
  collect(definition.roots(), met, found);
  std::vector<NDArray> dense;
  for (const NDArray& array : found) (array.is_sparse() ? sparse_ : dense).push_back(array);
  for (const NDArray& array : dense) constants_.emplace_back(array);
  if (!dense.empty()) arrays_ = std::make_shared<const std::vector<NDArray>>(std::move(dense));
}

void WatchedConstants::wait() const {
  for (const Watched& constant : constants_) constant.array.wait_to_read();
  for (const NDArray& array : sparse_) array.wait_to_read();
}

bool WatchedConstants::have_changed() {
  bool changed = false;
  for (Watched& constant : constants_) changed |= constant.has_changed();
  return changed;
}

}  // namespace hybridnet
