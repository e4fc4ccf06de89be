#include "kernels/index/gather.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "device/stream.h"
#include "hybridnet/storage.h"
#include "hybridnet/threads.h"
#include "kernels/elementwise/integers.h"
#include "kernels/index/device_index.h"
#include "kernels/memory/strided_copy.h"
#include "storage/temporary.h"

namespace hybridnet::kernels {
namespace {

constexpr double kByteNs = 0.3;
// The columns that are summed at once; their sums stay in registers and the first-level cache.
constexpr int64_t kColumns = 128;
// With fewer elements, sorting the ids costs more than it saves.
constexpr int64_t kSerialElements = 16 << 10;
constexpr int64_t kShortRow = 8, kFewMeet = 4;

template <typename F>
void with_element(int64_t bytes, F&& f) {
  switch (bytes) {
    case 1:
      return f(uint8_t{});
    case 2:
      return f(uint16_t{});
    case 4:
      return f(uint32_t{});
    default:
      return f(uint64_t{});
  }
}

double copy_ns(int64_t bytes) { return kByteNs * static_cast<double>(bytes); }

// A row, or a part of one, and the ids that refer to it: positions order[begin..end).
struct Segment {
  int64_t row, begin, end;
};

// Groups positions by id, ascending within a group.
void group_by_row(const int64_t* ids, int64_t count, Temporary<int64_t>* order, Temporary<Segment>* segments) {
  order->resize(static_cast<size_t>(count));
  std::iota(order->begin(), order->end(), int64_t{0});
  std::sort(order->begin(), order->end(),
            [ids](int64_t a, int64_t b) { return ids[a] != ids[b] ? ids[a] < ids[b] : a < b; });
  for (int64_t i = 0; i < count;) {
    const int64_t row = ids[(*order)[static_cast<size_t>(i)]];
    int64_t end = i + 1;
    while (end < count && ids[(*order)[static_cast<size_t>(end)]] == row) ++end;
    segments->push_back({row, i, end});
    i = end;
  }
}

template <typename T>
void add_rows_serial(const T* grads, RowLayout l, const int64_t* ids, int64_t count, T* out) {
  for (int64_t o = 0; o < l.outer; ++o) {
    for (int64_t m = 0; m < count; ++m) {
      const T* g = grads + (o * count + m) * l.inner;
      T* to = out + (o * l.rows + ids[m]) * l.inner;
      for (int64_t i = 0; i < l.inner; ++i) to[i] = static_cast<T>(to[i] + g[i]);
    }
  }
}

template <typename T>
void add_rows_grouped(const T* grads, RowLayout l, const int64_t* ids, int64_t count, T* out) {
  using A = std::conditional_t<std::is_integral_v<T>, T, accumulator_t<T>>;
  Temporary<int64_t> order;
  Temporary<Segment> segments;
  group_by_row(ids, count, &order, &segments);
  const int64_t blocks = (l.inner + kColumns - 1) / kColumns, num = static_cast<int64_t>(segments.size());
  const int64_t item_bytes = count / num * std::min(kColumns, l.inner) * static_cast<int64_t>(sizeof(T));
  parallel_for(l.outer * num * blocks, copy_ns(item_bytes), [&](int64_t first, int64_t last) {
    A sum[kColumns];
    for (int64_t item = first; item < last; ++item) {
      const int64_t block = item % blocks, o = item / blocks / num;
      const Segment& segment = segments[static_cast<size_t>(item / blocks % num)];
      const int64_t column = block * kColumns, n = std::min(kColumns, l.inner - column);
      std::fill_n(sum, n, A(0));
      for (int64_t k = segment.begin; k < segment.end; ++k) {
        const T* g = grads + (o * count + order[static_cast<size_t>(k)]) * l.inner + column;
        for (int64_t i = 0; i < n; ++i) sum[i] = static_cast<A>(sum[i] + static_cast<A>(g[i]));
      }
      T* to = out + (o * l.rows + segment.row) * l.inner + column;
      for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(sum[i]);
    }
  });
}

constexpr int64_t kShortRowBytes = 64;
constexpr int64_t kBufferBytes = 64 << 10;  // stays in the second-level cache

// The positions whose row is another one.
void find_moved(const int64_t* ids, int64_t count, Temporary<int64_t>* moved) {
  for (int64_t m = 0; m < count; ++m)
    if (ids[m] != m) moved->push_back(m);
}

// Moves a few columns of all rows at a time, through a buffer.
void move_columns(char* data, RowLayout l, const int64_t* ids, const Temporary<int64_t>& moved, int64_t row_bytes) {
  const auto count = static_cast<int64_t>(moved.size());
  const int64_t width = std::min(row_bytes, std::max(kShortRowBytes, kBufferBytes / count / 64 * 64));
  const int64_t blocks = (row_bytes + width - 1) / width;
  parallel_for(l.outer * blocks, copy_ns(width * count), [&](int64_t begin, int64_t end) {
    Temporary<char> buffer(static_cast<size_t>(width * count));
    for (int64_t item = begin; item < end; ++item) {
      const int64_t column = item % blocks * width;
      const auto bytes = static_cast<size_t>(std::min(width, row_bytes - column));
      char* const plane = data + item / blocks * l.rows * row_bytes + column;
      for (int64_t k = 0; k < count; ++k)
        std::memcpy(buffer.data() + k * width, plane + ids[moved[static_cast<size_t>(k)]] * row_bytes, bytes);
      for (int64_t k = 0; k < count; ++k)
        std::memcpy(plane + moved[static_cast<size_t>(k)] * row_bytes, buffer.data() + k * width, bytes);
    }
  });
}

void gather_in_place(char* data, RowLayout l, const int64_t* ids, int64_t element_bytes) {
  Temporary<int64_t> moved;
  find_moved(ids, l.rows, &moved);
  const int64_t row_bytes = l.inner * element_bytes;
  if (moved.empty()) return;
  if (row_bytes >= kShortRowBytes) return move_columns(data, l, ids, moved, row_bytes);
  Temporary<char> copy(static_cast<size_t>(l.outer * l.rows * row_bytes));
  copy_bytes(data, copy.data(), l.outer * l.rows * row_bytes);
  gather_rows(copy.data(), l, ids, l.rows, data, element_bytes);
}

void gather_on_device(const void* data, RowLayout l, const int64_t* ids, int64_t count, void* out,
                      int64_t element_bytes) {
  if (data != out) return on_device::gather_rows(data, l, ids, count, out, element_bytes);
  const int64_t bytes = l.outer * l.rows * l.inner * element_bytes;
  const OwnedBlock copy(bytes, device::current()->device());
  copy_bytes(data, copy.data(), bytes);
  on_device::gather_rows(copy.data(), l, ids, count, out, element_bytes);
}

template <typename T>
inline constexpr bool kIsHalf = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;

}  // namespace

void gather_last_rows(const void* data, RowLayout l, const int64_t* ids, int64_t count, void* out,
                      int64_t element_bytes) {
  if (device::current()) return on_device::gather_last_rows(data, l, ids, count, out, element_bytes);
  gather_rows(data, l, ids, count, out, element_bytes);
  Temporary<int64_t> last(static_cast<size_t>(l.rows));
  for (int64_t m = 0; m < count; ++m) last[static_cast<size_t>(ids[m])] = m;
  const int64_t bytes = l.inner * element_bytes;
  for (int64_t m = 0; m < count; ++m) {
    if (last[static_cast<size_t>(ids[m])] == m) continue;
    for (int64_t o = 0; o < l.outer; ++o) zero_bytes(static_cast<char*>(out) + (o * count + m) * bytes, bytes);
  }
}

void gather_rows(const void* data, RowLayout l, const int64_t* ids, int64_t count, void* out, int64_t element_bytes) {
  const int64_t row_bytes = l.inner * element_bytes;
  if (l.outer * count * row_bytes == 0) return;  // then both may be null
  if (device::current()) return gather_on_device(data, l, ids, count, out, element_bytes);
  if (data == out) return gather_in_place(static_cast<char*>(out), l, ids, element_bytes);
  parallel_for(l.outer * count, copy_ns(row_bytes), [&](int64_t begin, int64_t end) {
    int64_t o = begin / count, m = begin % count;
    for (int64_t item = begin; item < end;) {
      const int64_t stop = std::min(end, item + count - m);
      const char* from = static_cast<const char*>(data) + o * l.rows * row_bytes;
      char* to = static_cast<char*>(out) + item * row_bytes;
      if (l.inner == 1) {
        with_element(element_bytes, [&](auto word) {
          using W = decltype(word);
          for (int64_t k = 0; k < stop - item; ++k)
            reinterpret_cast<W*>(to)[k] = reinterpret_cast<const W*>(from)[ids[m + k]];
        });
      } else {
        for (int64_t k = 0; k < stop - item; ++k) {
          std::memcpy(to + k * row_bytes, from + ids[m + k] * row_bytes, static_cast<size_t>(row_bytes));
        }
      }
      item = stop;
      m = 0;
      ++o;
    }
  });
}

void scatter_rows(const void* values, RowLayout l, const int64_t* ids, int64_t count, void* data,
                  int64_t element_bytes) {
  if (device::current()) return on_device::scatter_rows(values, l, ids, count, data, element_bytes);
  const int64_t row_bytes = l.inner * element_bytes;
  if (row_bytes == 0) return;
  // Split by outer index only: within one, later rows overwrite earlier ones.
  parallel_for(l.outer, copy_ns(count * row_bytes), [&](int64_t begin, int64_t end) {
    for (int64_t o = begin; o < end; ++o) {
      for (int64_t m = 0; m < count; ++m) {
        std::memcpy(static_cast<char*>(data) + (o * l.rows + ids[m]) * row_bytes,
                    static_cast<const char*>(values) + (o * count + m) * row_bytes, static_cast<size_t>(row_bytes));
      }
    }
  });
}

void scatter_add_rows(const TensorRef& grads, RowLayout l, const int64_t* ids, int64_t count, const TensorRef& out) {
  zero_bytes(out.data, out.size() * dtype_size(out.dtype));
  if (grads.size() == 0) return;
  if (device::current()) return on_device::scatter_add_rows(grads, l, ids, count, out);
  dispatch_wrapping(out.dtype, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (!kIsHalf<T>) {
      // Finding equal indices costs more than adding short rows. If many ids refer to one row, sums are kept in
      // float64.
      const bool short_rows = l.inner < kShortRow && count <= kFewMeet * l.rows;
      if (grads.size() < kSerialElements || short_rows)
        return add_rows_serial(grads.as<T>(), l, ids, count, out.as<T>());
    }
    add_rows_grouped(grads.as<T>(), l, ids, count, out.as<T>());
  });
}

void gather_along(const void* data, RowLayout l, const int64_t* ids, int64_t count, void* out, int64_t element_bytes) {
  if (device::current()) return on_device::gather_along(data, l, ids, count, out, element_bytes);
  with_element(element_bytes, [&](auto word) {
    using W = decltype(word);
    const W* from = static_cast<const W*>(data);
    W* to = static_cast<W*>(out);
    parallel_for(l.outer * count, copy_ns(l.inner * element_bytes * 4), [&](int64_t begin, int64_t end) {
      for (int64_t item = begin; item < end; ++item) {
        const W* plane = from + item / count * l.rows * l.inner;
        for (int64_t i = 0; i < l.inner; ++i) to[item * l.inner + i] = plane[ids[item * l.inner + i] * l.inner + i];
      }
    });
  });
}

void scatter_add_along(const TensorRef& grads, RowLayout l, const int64_t* ids, int64_t count, const TensorRef& out) {
  zero_bytes(out.data, out.size() * dtype_size(out.dtype));
  if (device::current()) return on_device::scatter_add_along(grads, l, ids, count, out);
  dispatch_wrapping(out.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* g = grads.as<T>();
    T* to = out.as<T>();
    parallel_for(l.outer, copy_ns(count * l.inner * 8), [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) {
        T* plane = to + o * l.rows * l.inner;
        for (int64_t k = o * count * l.inner; k < (o + 1) * count * l.inner; ++k) {
          T& element = plane[ids[k] * l.inner + k % l.inner];
          element = static_cast<T>(element + g[k]);
        }
      }
    });
  });
}

}  // namespace hybridnet::kernels
