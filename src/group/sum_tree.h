// The sum of one array per shard in a fixed order: a binary tree over the numbers of the shards. Each sum of two is
// rounded to the dtype of the arrays, so the result does not depend on which process adds which nodes.
// Threads: any.
// Throws:  nothing.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "hybridnet/base.h"

namespace hybridnet::group {

// The shards [begin, end), or the sum over them.
struct Shards {
  int begin = 0, end = 0;
  bool operator==(const Shards&) const = default;
};

// The shards of a process: contiguous, and as many for each process as possible.
Shards shards_of(int rank, int processes, int shards);
// The fewest nodes of the tree over all `shards` that cover `own`, in order.
std::vector<Shards> covering_nodes(Shards own, int shards);

struct Row {
  Shards shards;
  const void* values = nullptr;
};
// out[i] = the sum over all shards. The rows cover the tree as covering_nodes() gives them, in order; out may be one of
// them. Bool is added as logical or.
void add_tree(DType dtype, std::span<const Row> rows, int64_t count, void* out);

}  // namespace hybridnet::group
