// Releases values of arrays that packed copies replace (evictable_values.h).
#pragma once

#include <span>

#include "hybridnet/ndarray.h"

namespace hybridnet {

bool may_be_released(const NDArray& array);  // true if a packed copy of its values was accepted
void release_accepted(std::span<const NDArray> arrays);

// For a task that has finished reading these arrays and may have packed some: releases the values that packed copies
// replace. Arrays that other tasks use now are left to their next reader.
inline void release_packed(std::span<const NDArray> arrays) {
  if (EvictableValues::any_accepted()) release_accepted(arrays);
}

}  // namespace hybridnet
