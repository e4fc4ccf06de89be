#include "kernels/sparse/sparse_rows.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "hybridnet/threads.h"
#include "kernels/elementwise/integers.h"

namespace hybridnet::kernels {
namespace {

constexpr double kByteNs = 0.3;
// The columns that are summed at once; their sums stay in registers and the first-level cache.
constexpr int64_t kColumns = 128;

double bytes_ns(int64_t bytes) { return kByteNs * static_cast<double>(bytes); }

// Dense ids are counted, one bucket each; others are sorted.
bool worth_counting(int64_t range, int64_t count) { return range <= 4 * count + 1024; }

void group_by_counting(std::span<const int64_t> ids, int64_t smallest, int64_t range, RowGroups* groups) {
  std::vector<int64_t> first(static_cast<size_t>(range) + 1, 0);
  for (const int64_t id : ids) ++first[static_cast<size_t>(id - smallest) + 1];
  for (int64_t id = 0; id < range; ++id) {
    const int64_t members = first[static_cast<size_t>(id) + 1];
    if (members > 0) {
      groups->ids.push_back(id + smallest);
      groups->starts.push_back(first[static_cast<size_t>(id)]);
    }
    first[static_cast<size_t>(id) + 1] += first[static_cast<size_t>(id)];
  }
  for (size_t i = 0; i < ids.size(); ++i)
    groups->order[static_cast<size_t>(first[static_cast<size_t>(ids[i] - smallest)]++)] = static_cast<int64_t>(i);
}

// Sorts (id, position) pairs byte by byte of the ids, lowest first: stable, so positions stay ascending.
void group_by_sorting(std::span<const int64_t> ids, int64_t smallest, int64_t range, RowGroups* groups) {
  struct Item {
    int64_t id, position;
  };
  std::vector<Item> items(ids.size()), sorted(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) items[i] = {ids[i] - smallest, static_cast<int64_t>(i)};
  constexpr int kBits = 11, kBuckets = 1 << kBits;
  for (int shift = 0; shift < 63 && (range - 1) >> shift > 0; shift += kBits) {
    int64_t first[kBuckets + 1] = {};
    for (const Item& item : items) ++first[(item.id >> shift & (kBuckets - 1)) + 1];
    for (int b = 0; b < kBuckets; ++b) first[b + 1] += first[b];
    for (const Item& item : items) sorted[static_cast<size_t>(first[item.id >> shift & (kBuckets - 1)]++)] = item;
    items.swap(sorted);
  }
  for (size_t i = 0; i < items.size(); ++i) {
    if (i == 0 || items[i].id != items[i - 1].id) {
      groups->ids.push_back(items[i].id + smallest);
      groups->starts.push_back(static_cast<int64_t>(i));
    }
    groups->order[i] = items[i].position;
  }
}

template <typename T>
void sum_columns(const RowGroups& groups, int64_t g, const T* rows, int64_t width, T* to) {
  using A = accumulator_t<T>;
  const int64_t begin = groups.starts[static_cast<size_t>(g)], end = groups.starts[static_cast<size_t>(g) + 1];
  A sum[kColumns];
  for (int64_t column = 0; column < width; column += kColumns) {
    const int64_t n = std::min(kColumns, width - column);
    std::fill_n(sum, n, A(0));
    for (int64_t k = begin; k < end; ++k) {
      const T* row = rows + groups.order[static_cast<size_t>(k)] * width + column;
      for (int64_t i = 0; i < n; ++i) sum[i] = static_cast<A>(sum[i] + static_cast<A>(row[i]));
    }
    for (int64_t i = 0; i < n; ++i) to[column + i] = static_cast<T>(sum[i]);
  }
}

}  // namespace

bool strictly_ascending(std::span<const int64_t> ids) {
  for (size_t i = 1; i < ids.size(); ++i)
    if (ids[i - 1] >= ids[i]) return false;
  return true;
}

RowGroups group_rows(std::span<const int64_t> ids) {
  RowGroups groups;
  groups.order.resize(ids.size());
  if (!ids.empty()) {
    const auto [smallest, largest] = std::minmax_element(ids.begin(), ids.end());
    const int64_t range = *largest - *smallest + 1;
    if (worth_counting(range, static_cast<int64_t>(ids.size())))
      group_by_counting(ids, *smallest, range, &groups);
    else
      group_by_sorting(ids, *smallest, range, &groups);
  }
  groups.starts.push_back(static_cast<int64_t>(ids.size()));
  return groups;
}

void sum_groups(const RowGroups& groups, const void* rows, int64_t width, DType dtype, void* out) {
  if (groups.size() == 0 || width == 0) return;
  dispatch_wrapping(dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* from = static_cast<const T*>(rows);
    T* to = static_cast<T*>(out);
    const int64_t row_bytes = width * static_cast<int64_t>(sizeof(T));
    const int64_t members = static_cast<int64_t>(groups.order.size()) / groups.size();
    parallel_for(groups.size(), bytes_ns(row_bytes * members), [&](int64_t begin, int64_t end) {
      for (int64_t g = begin; g < end; ++g) {
        const int64_t first = groups.starts[static_cast<size_t>(g)];
        if (groups.starts[static_cast<size_t>(g) + 1] - first == 1)
          std::memcpy(to + g * width, from + groups.order[static_cast<size_t>(first)] * width,
                      static_cast<size_t>(row_bytes));
        else
          sum_columns(groups, g, from, width, to + g * width);
      }
    });
  });
}

std::vector<int64_t> nonzero_rows(const void* data, int64_t rows, int64_t width, DType dtype) {
  std::vector<uint8_t> stored(static_cast<size_t>(rows), 0);
  if (width > 0) {
    dispatch_dtype(dtype, [&](auto zero) {
      using T = decltype(zero);
      const T* values = static_cast<const T*>(data);
      parallel_for(rows, bytes_ns(width * static_cast<int64_t>(sizeof(T))), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; ++r) {
          const T* row = values + r * width;
          stored[static_cast<size_t>(r)] =
              std::any_of(row, row + width, [](T v) { return static_cast<accumulator_t<T>>(v) != 0; });
        }
      });
    });
  }
  std::vector<int64_t> found;
  for (int64_t r = 0; r < rows; ++r)
    if (stored[static_cast<size_t>(r)] != 0) found.push_back(r);
  return found;
}

void align(std::span<const int64_t> a, std::span<const int64_t> b, bool common_only, Alignment* out) {
  const auto add = [out](int64_t id, size_t in_a, size_t in_b) {
    out->ids.push_back(id);
    out->a.push_back(static_cast<int64_t>(in_a));
    out->b.push_back(static_cast<int64_t>(in_b));
  };
  constexpr size_t kNone = static_cast<size_t>(-1);
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (a[i] == b[j]) {
      add(a[i], i, j);
      ++i, ++j;
    } else if (a[i] < b[j]) {
      if (!common_only) add(a[i], i, kNone);
      ++i;
    } else {
      if (!common_only) add(b[j], kNone, j);
      ++j;
    }
  }
  if (common_only) return;
  for (; i < a.size(); ++i) add(a[i], i, kNone);
  for (; j < b.size(); ++j) add(b[j], kNone, j);
}

void gather_or_zero(const void* rows, int64_t row_bytes, std::span<const int64_t> positions, void* out) {
  if (row_bytes == 0) return;
  const char* from = static_cast<const char*>(rows);
  char* to = static_cast<char*>(out);
  parallel_for(static_cast<int64_t>(positions.size()), bytes_ns(row_bytes), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t position = positions[static_cast<size_t>(i)];
      if (position < 0)
        std::memset(to + i * row_bytes, 0, static_cast<size_t>(row_bytes));
      else
        std::memcpy(to + i * row_bytes, from + position * row_bytes, static_cast<size_t>(row_bytes));
    }
  });
}

std::vector<int64_t> find_rows(std::span<const int64_t> ids, std::span<const int64_t> wanted) {
  std::vector<int64_t> positions(wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    const auto found = std::lower_bound(ids.begin(), ids.end(), wanted[i]);
    positions[i] = found != ids.end() && *found == wanted[i] ? found - ids.begin() : -1;
  }
  return positions;
}

}  // namespace hybridnet::kernels
