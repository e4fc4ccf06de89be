// The order of the elements of a row: stable, NaN counts as the largest, 0 and -0 as equal.
#pragma once

#include <cstdint>

#include "hybridnet/base.h"
#include "storage/temporary.h"

namespace hybridnet::kernels {

// Buffers for ordering rows, which one thread reuses from row to row.
class RowOrder {
 public:
  // Returns the positions of the first k elements in sort order (smallest first if `ascending`). The row has `size`
  // elements, `stride` apart. The result is valid until the next call.
  template <typename T>
  const int64_t* find(const T* row, int64_t size, int64_t stride, int64_t k, bool ascending);

 private:
  struct Wide {
    uint64_t key;
    int64_t position;
    bool operator<(const Wide& o) const { return key != o.key ? key < o.key : position < o.position; }
  };
  template <typename Item>
  static void select(Temporary<Item>& items, int64_t k);
  void radix_sort();

  Temporary<uint64_t> packed_, spare_;  // key in the upper half, position in the lower
  Temporary<Wide> wide_;
  Temporary<int64_t> order_;
};

}  // namespace hybridnet::kernels
