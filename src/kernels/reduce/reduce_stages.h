// The order in which reductions combine elements: it depends on the shape alone, and is the same on the CPU and on
// devices.
#pragma once

#include <algorithm>
#include <cstdint>

#include "hybridnet/base.h"
#include "kernels/reduce/reduce.h"

namespace hybridnet::kernels {

constexpr int64_t kReduceRowBlock = 32768;  // elements of a contiguous run that are summed before the sum is merged
constexpr int64_t kReduceHalfTile = 1024;   // the same for halves, whose tiles are merged one by one

// Reductions of the innermost reduced axis first; each stage but the first reads accumulators.
struct ReduceStages {
  ReduceStages(const Shape& shape, uint32_t axes);

  struct Stage {
    int64_t outer, reduced, inner;
  };
  int count = 0;  // 0 if there are no outputs
  Stage stages[kMaxDims];
  int64_t reduced_count = 1;  // elements for each output
};

// Columns of few outputs over many rows are split along the rows, too: by the shape, never by the number of threads.
struct ColumnBlocks {
  ColumnBlocks(int64_t outer, int64_t reduced, int64_t inner) {
    constexpr int64_t kTasks = 64, kMinRows = 256;
    const int64_t units = outer * ((inner + ReduceLoops::kMaxWidth - 1) / ReduceLoops::kMaxWidth);
    const int64_t wanted = units >= kTasks ? 1 : (kTasks + units - 1) / units;
    rows = std::max(kMinRows, (reduced + wanted - 1) / wanted);
    blocks = (reduced + rows - 1) / rows;
  }
  int64_t rows, blocks;
};

}  // namespace hybridnet::kernels
