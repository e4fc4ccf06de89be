#include "ndarray/release.h"

#include "engine/sole_reader.h"

namespace hybridnet {

bool may_be_released(const NDArray& array) {
  if (!StandIn::any_accepted()) return false;
  DerivedData* const derived = array.impl()->chunk->derived();
  const StandIn* const stand_in = derived ? derived->stand_in() : nullptr;
  return stand_in && stand_in->is_accepted();
}

void release_accepted(std::span<const NDArray> arrays) {
  for (const NDArray& array : arrays) {
    if (!may_be_released(array)) continue;
    const SoleReader alone(array.var());
    if (alone) array.impl()->chunk->release_values();
  }
}

}  // namespace hybridnet
