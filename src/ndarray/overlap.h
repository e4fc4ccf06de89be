// Arrays that show the same memory.
#pragma once

#include <span>

#include "hybridnet/ndarray.h"

namespace hybridnet {

// Have the values of two arrays a byte in common? Views of one array may lie side by side; arrays over foreign memory
// may lie over one another without knowing of each other.
bool overlap(const NDArray& a, const NDArray& b);

// Do both show the same bytes, so that a copy of one into the other would do nothing?
bool is_same_place(const NDArray& a, const NDArray& b);

// Is there a pair among many arrays? null arrays: passed over.
bool any_overlap(std::span<const NDArray> arrays);

}  // namespace hybridnet
