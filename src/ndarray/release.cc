#include "ndarray/release.h"

#include "engine/sole_reader.h"

namespace hybridnet {

void release_accepted(std::span<const NDArray> arrays) {
  for (const NDArray& array : arrays) {
    Chunk& chunk = *array.impl()->chunk;
    const StandIn* const stand_in = chunk.derived() ? chunk.derived()->stand_in() : nullptr;
    if (!stand_in || !stand_in->is_accepted()) continue;
    const SoleReader alone(array.var());
    if (alone) chunk.release_values();
  }
}

}  // namespace hybridnet
