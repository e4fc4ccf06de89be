#include <algorithm>

#include "plan/plan.h"

namespace hybridnet {
namespace {

constexpr int64_t kAlignment = 64;

int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

int64_t place_in_arena(std::vector<PlanStorage*> temporaries) {
  std::stable_sort(temporaries.begin(), temporaries.end(),
                   [](const PlanStorage* a, const PlanStorage* b) { return a->bytes > b->bytes; });
  std::vector<PlanStorage*> placed;  // by offset
  int64_t total = 0;
  for (PlanStorage* storage : temporaries) {
    const int64_t size = aligned(storage->bytes);
    int64_t offset = 0;
    for (const PlanStorage* other : placed) {
      const bool exclusive = storage->cond && storage->cond == other->cond && storage->side != other->side;
      const bool together = other->first <= storage->last && storage->first <= other->last && !exclusive;
      if (!together) continue;
      if (other->offset - offset >= size) break;
      offset = std::max(offset, other->offset + aligned(other->bytes));
    }
    storage->offset = offset;
    total = std::max(total, offset + size);
    const auto at = std::upper_bound(placed.begin(), placed.end(), offset,
                                     [](int64_t o, const PlanStorage* s) { return o < s->offset; });
    if (size > 0) placed.insert(at, storage);
  }
  return total;
}

}  // namespace hybridnet
