// Stable order of the rows of a tensor (outer, rows, inner) along its middle axis; NaN is the largest, 0 and -0 are
// equal (kernels/index/row_order.h). Runs of 256 are sorted by counting; pairs of runs are then merged, each element
// by a search in the other run.
#pragma once

#include "kernels/device/elements.cuh"
#include "kernels/device/values_arguments.h"

namespace hybridnet::device {

inline constexpr int64_t kSortRun = 256;

template <class T>
__device__ inline auto ordered(T x) {
  if constexpr (is_half<T>)
    return static_cast<float>(x);
  else
    return x;
}
template <class C>
__device__ inline bool is_less(C x, C y) {
  return x < y || (y != y && x == x);
}

template <class T>
struct RowKeys {
  const T* row;
  int64_t inner, ascending;
  __device__ RowKeys(const SortArguments& a, int64_t item)
      : row(static_cast<const T*>(a.in) + item / a.inner * a.rows * a.inner + item % a.inner),
        inner(a.inner),
        ascending(a.ascending) {}
  // Whether element i comes before element k if their order in the row does not decide.
  __device__ bool before(int64_t i, int64_t k) const {
    const auto x = ordered(row[i * inner]), y = ordered(row[k * inner]);
    return ascending ? is_less(x, y) : is_less(y, x);
  }
};

template <class T>
__device__ inline void sort_runs(const SortArguments& a) {
  for (int64_t at = first(); at < a.items * a.rows; at += step()) {
    const int64_t item = at / a.rows, i = at % a.rows, begin = i / kSortRun * kSortRun;
    const int64_t end = begin + kSortRun < a.rows ? begin + kSortRun : a.rows;
    const RowKeys<T> keys(a, item);
    int64_t rank = 0;
    for (int64_t k = begin; k < end; ++k) rank += keys.before(k, i) || (k < i && !keys.before(i, k));
    a.order[item * a.rows + begin + rank] = i;
  }
}

// Merges runs of a.width from a.order to a.other.
template <class T>
__device__ inline void merge_runs(const SortArguments& a) {
  for (int64_t at = first(); at < a.items * a.rows; at += step()) {
    const int64_t item = at / a.rows, slot = at % a.rows, run = slot / a.width;
    const int64_t* const order = a.order + item * a.rows;
    const int64_t i = order[slot], pair = run / 2 * 2 * a.width;
    const bool is_left = run % 2 == 0;
    int64_t low = is_left ? pair + a.width : pair, high = is_left ? pair + 2 * a.width : pair + a.width;
    low = low < a.rows ? low : a.rows;
    high = high < a.rows ? high : a.rows;
    const int64_t other = low;
    const RowKeys<T> keys(a, item);
    while (low < high) {  // the first element of the other run that comes after i
      const int64_t middle = low + (high - low) / 2;
      const bool comes_first = is_left ? keys.before(order[middle], i) : !keys.before(i, order[middle]);
      if (comes_first)
        low = middle + 1;
      else
        high = middle;
    }
    a.other[item * a.rows + pair + (slot - run * a.width) + (low - other)] = i;
  }
}

template <class T, class Index>
__device__ inline void write_sorted(const SortArguments& a) {
  for (int64_t at = first(); at < a.items * a.count; at += step()) {
    const int64_t item = at / a.count, rank = at % a.count, i = a.order[item * a.rows + rank];
    const int64_t to = (item / a.inner * a.count + rank) * a.inner + item % a.inner;
    const int64_t from = (item / a.inner * a.rows + i) * a.inner + item % a.inner;
    if (a.values) static_cast<T*>(a.values)[to] = static_cast<const T*>(a.in)[from];
    if (a.positions) a.positions[to] = i;
    if (a.indices) static_cast<Index*>(a.indices)[to] = convert<Index>(i);
    if (a.mask) static_cast<T*>(a.mask)[from] = convert<T>(1.0f);
  }
}

}  // namespace hybridnet::device
