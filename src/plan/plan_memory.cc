#include <algorithm>
#include <map>

#include "plan/plan.h"

namespace hybridnet {
namespace {

constexpr int64_t kAlignment = 64;

int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// The values that are alive between two instructions, found without visiting all others: a value alive at `first` is
// kept by a node of a segment tree on the path to that leaf, the others begin after it.
class Alive {
 public:
  explicit Alive(int instructions) : leaves_(instructions), covering_(2 * static_cast<size_t>(instructions)) {}

  void insert(PlanStorage* storage) {
    int from = storage->first + leaves_, to = storage->last + leaves_ + 1;
    for (; from < to; from /= 2, to /= 2) {
      if (from % 2 == 1) covering_[static_cast<size_t>(from++)].push_back(storage);
      if (to % 2 == 1) covering_[static_cast<size_t>(--to)].push_back(storage);
    }
    by_first_.emplace(storage->first, storage);
  }

  // Collects the values that are alive together with `storage`. Returns false if there are too many to be worth it.
  bool together_with(const PlanStorage& storage, std::vector<const PlanStorage*>& found) const {
    found.clear();
    for (int node = storage.first + leaves_; node > 0; node /= 2) {
      const auto& here = covering_[static_cast<size_t>(node)];
      if (found.size() + here.size() > kMaxFound) return false;
      found.insert(found.end(), here.begin(), here.end());
    }
    for (auto it = by_first_.upper_bound(storage.first); it != by_first_.end() && it->first <= storage.last; ++it) {
      if (found.size() == kMaxFound) return false;
      found.push_back(it->second);
    }
    return true;
  }

 private:
  static constexpr size_t kMaxFound = 128;
  const int leaves_;
  std::vector<std::vector<PlanStorage*>> covering_;  // per node of the tree, leaves last
  std::multimap<int, PlanStorage*> by_first_;
};

bool lower(const PlanStorage* a, const PlanStorage* b) { return a->offset < b->offset; }

// Returns the lowest gap for `storage` between those of `others`, sorted by offset, that are alive at the same time.
int64_t lowest_gap(const PlanStorage& storage, const std::vector<const PlanStorage*>& others) {
  const int64_t size = aligned(storage.bytes);
  int64_t offset = 0;
  for (const PlanStorage* other : others) {
    const bool exclusive = storage.cond && storage.cond == other->cond && storage.side != other->side;
    const bool together = other->first <= storage.last && storage.first <= other->last && !exclusive;
    if (!together) continue;
    if (other->offset - offset >= size) break;
    offset = std::max(offset, other->offset + aligned(other->bytes));
  }
  return offset;
}

}  // namespace

int64_t place_in_arena(std::vector<PlanStorage*> temporaries) {
  std::stable_sort(temporaries.begin(), temporaries.end(),
                   [](const PlanStorage* a, const PlanStorage* b) { return a->bytes > b->bytes; });
  int instructions = 0;
  for (const PlanStorage* storage : temporaries) instructions = std::max(instructions, storage->last + 1);
  Alive alive(instructions);
  std::vector<const PlanStorage*> placed, few;  // both sorted by offset
  int64_t total = 0;
  for (PlanStorage* storage : temporaries) {
    const bool are_few = alive.together_with(*storage, few);
    if (are_few) std::sort(few.begin(), few.end(), lower);
    storage->offset = lowest_gap(*storage, are_few ? few : placed);
    total = std::max(total, storage->offset + aligned(storage->bytes));
    if (storage->bytes == 0) continue;
    alive.insert(storage);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), storage, lower), storage);
  }
  return total;
}

}  // namespace hybridnet
