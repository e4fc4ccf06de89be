// Values of arrays that packed copies stand in for.
#pragma once

#include <span>

#include "hybridnet/ndarray.h"

namespace hybridnet {

bool may_be_released(const NDArray& array);  // a packed copy was accepted for its values
void release_accepted(std::span<const NDArray> arrays);

// In a task that has read these arrays and is done with them, and may have packed some: releases the values that only
// packed copies are read for. Those that others read now are left to their next reader.
inline void release_packed(std::span<const NDArray> arrays) {
  if (StandIn::any_accepted()) release_accepted(arrays);
}

}  // namespace hybridnet
