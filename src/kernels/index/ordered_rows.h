// Rows that stand in other entries of a batch: those of a beam search's caches, which stay where they were written
// while the beams change places.
#pragma once

#include <cstdint>

namespace hybridnet::kernels {

// A tensor viewed as (entries, middle, rows, bytes).
struct OrderedLayout {
  int64_t entries = 0, middle = 1, rows = 0, bytes = 0;
};

// out[e, m, r, :] = data[order[e, r], m, r, :]; entries out of range are the nearest one. out may be the memory of
// data: rows that keep their place are then neither read nor written.
void gather_ordered_rows(const void* data, const OrderedLayout& layout, const int32_t* order, void* out);

}  // namespace hybridnet::kernels
