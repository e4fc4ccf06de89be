// Operators that number axes, or broadcast over them, on channels-last images: the same operator runs over the axes in
// memory order, (batch, spatial..., channels).
#pragma once

#include <vector>

#include "hybridnet/op.h"

namespace hybridnet {

// The positions of the axes (batch, channels, spatial...) in channels-last memory.
std::vector<int> channels_last_axes(int ndim);

// True if the use has channels-last images, and the op's kernel does not support them.
bool needs_memory_order(const Op& op, const LinkContext& c);
// Links the op for axes in memory order. All images must be channels-last, except those with one spatial position,
// whose two orders are equal.
Ref<Kernel> link_in_memory_order(const Op& op, const LinkContext& c);

}  // namespace hybridnet
