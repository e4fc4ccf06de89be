// Arrays that show the same memory.
#pragma once

#include <span>

#include "hybridnet/ndarray.h"

namespace hybridnet {

// overlap() of arrays over the same or foreign memory, and of sparse ones.
bool ranges_overlap(const NDArray& a, const NDArray& b);
// Have the values of two arrays a byte in common? Views of one array may lie side by side; arrays over foreign memory
// may lie over one another without knowing of each other.
inline bool overlap(const NDArray& a, const NDArray& b) {
  const Chunk &first = *a.impl()->chunk, &second = *b.impl()->chunk;
  const bool stand_alone = !first.original && !second.original && !first.is_foreign() && !second.is_foreign();
  if (&first != &second && stand_alone && !a.impl()->sparse && !b.impl()->sparse) return false;
  return ranges_overlap(a, b);
}

// Do both show the same bytes, so that a copy of one into the other would do nothing?
bool is_same_place(const NDArray& a, const NDArray& b);

// Is there a pair among many arrays? null arrays: passed over.
bool any_overlap(std::span<const NDArray> arrays);

}  // namespace hybridnet
