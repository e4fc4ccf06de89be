// Arrays whose memory was given away.
#pragma once

#include "hybridnet/ndarray.h"

namespace hybridnet {

// As Chunk::deferred_bytes: the memory belongs to other arrays by now.
constexpr int64_t kDonatedMemory = -2;

// With the spec of `given`, and without memory: asking for its values is an error that names the caller's line.
NDArray donated_array(const NDArray& given);

}  // namespace hybridnet
