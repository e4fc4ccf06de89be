// Detects arrays that share memory.
#pragma once

#include <span>

#include "hybridnet/ndarray.h"

namespace hybridnet {

// overlap() for arrays over the same chunk or foreign memory, and for sparse arrays.
bool ranges_overlap(const NDArray& a, const NDArray& b);
// True if the values of two arrays have a byte in common. Views of one array need not overlap; arrays over foreign
// memory may overlap although their chunks differ.
inline bool overlap(const NDArray& a, const NDArray& b) {
  const Chunk &first = *a.impl()->chunk, &second = *b.impl()->chunk;
  const bool stand_alone = !first.original && !second.original && !first.is_foreign() && !second.is_foreign();
  if (&first != &second && stand_alone && !a.impl()->sparse && !b.impl()->sparse) return false;
  return ranges_overlap(a, b);
}

// True if both have the same bytes, so that a copy of one into the other would do nothing.
bool is_same_place(const NDArray& a, const NDArray& b);

// True if any two of the arrays overlap. Skips null arrays.
bool any_overlap(std::span<const NDArray> arrays);

}  // namespace hybridnet
