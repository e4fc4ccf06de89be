// Operators that number axes, or broadcast over them, on channels-last images: the same operator over the axes in the
// order in which they lie in memory, (batch, spatial..., channels).
#pragma once

#include <vector>

#include "hybridnet/op.h"

namespace hybridnet {

// Where each axis of (batch, channels, spatial...) lies in channels-last memory.
std::vector<int> channels_last_axes(int ndim);

// Does the use have channels-last images, which the op's kernel does not know?
bool needs_memory_order(const Op& op, const LinkContext& c);
// Links the op for axes in the order of memory. All images are channels-last but those without space, which have one
// order only.
Ref<Kernel> link_in_memory_order(const Op& op, const LinkContext& c);

}  // namespace hybridnet
