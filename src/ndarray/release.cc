#include "ndarray/release.h"

#include "engine/exclusive_read.h"

namespace hybridnet {

bool may_be_released(const NDArray& array) {
  if (!EvictableValues::any_accepted()) return false;
  DerivedData* const derived = array.impl()->chunk->derived();
  const EvictableValues* const evictable_values = derived ? derived->evictable_values() : nullptr;
  return evictable_values && evictable_values->is_accepted();
}

void release_accepted(std::span<const NDArray> arrays) {
  for (const NDArray& array : arrays) {
    if (!may_be_released(array)) continue;
    const ExclusiveRead alone(array.var());
    if (alone) array.impl()->chunk->release_values();
  }
}

}  // namespace hybridnet
