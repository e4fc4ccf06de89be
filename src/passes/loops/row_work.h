// Work that loops may leave to one large operation over all iterations.
#pragma once

#include "hybridnet/pass.h"

namespace hybridnet::passes {

inline constexpr int64_t kMaxRowBytes = int64_t{256} << 20;             // of the rows that are held at once
inline constexpr int64_t kMaxRowBytesInPrediction = int64_t{16} << 20;  // where nothing keeps them for a gradient

// Does the op treat the rows (axis 0) of input 0 each by itself, and is it worth to be moved?
bool works_row_by_row(const Graph& body, const Node& node);

}  // namespace hybridnet::passes
