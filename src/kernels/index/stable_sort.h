// A stable sort whose memory comes from the storage; std::stable_sort allocates from the system.
#pragma once

#include <algorithm>
#include <numeric>

#include "storage/temporary.h"

namespace hybridnet::kernels {

// Sorts by `before`; equal items keep their order.
template <typename T, typename Before>
void stable_sort(Temporary<T>& items, Before before) {
  Temporary<size_t> order(items.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t i, size_t j) {
    if (before(items[i], items[j])) return true;
    return !before(items[j], items[i]) && i < j;
  });
  Temporary<T> sorted;
  sorted.reserve(items.size());
  for (const size_t i : order) sorted.push_back(items[i]);
  items.swap(sorted);
}

}  // namespace hybridnet::kernels
