// Copies and fills by kernels, for the launches of a batch: a graph of kernels alone can be updated by itself.
// Threads: any; current() must be set.
// Throws:  what launches throw.
#pragma once

#include <cstdint>

namespace hybridnet::device {

void launch_copy(void* to, const void* from, int64_t bytes);
void launch_fill(void* to, uint8_t value, int64_t bytes);

}  // namespace hybridnet::device
