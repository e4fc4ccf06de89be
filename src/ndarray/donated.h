// Arrays whose memory was donated to a function.
#pragma once

#include "hybridnet/ndarray.h"

namespace hybridnet {

// A value of Chunk::deferred_bytes: the memory belongs to other arrays now.
constexpr int64_t kDonatedMemory = -2;

// An array with the spec of `given` and without memory: reading its values is an error that names the caller's line.
NDArray donated_array(const NDArray& given);

}  // namespace hybridnet
