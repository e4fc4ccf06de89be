// Work that loops may leave to one large operation over all iterations.
#pragma once

#include "hybridnet/pass.h"

namespace hybridnet::passes {

inline constexpr int64_t kMaxRowBytes = int64_t{256} << 20;             // limit for the rows that are held at once
inline constexpr int64_t kMaxRowBytesInPrediction = int64_t{16} << 20;  // the same if no gradient keeps them

// True if the op treats each row (axis 0) of input 0 by itself and is worth moving.
bool works_row_by_row(const Graph& body, const Node& node);

}  // namespace hybridnet::passes
