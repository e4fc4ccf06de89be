// Reads and writes by index. Sums of rows with equal ids are added in the order of the ids, without atomics: each place
// knows the next one with its id.
#pragma once

#include "kernels/device/accumulators.cuh"
#include "kernels/device/index_arguments.h"

namespace hybridnet::device {

struct alignas(16) GatherWord16 {
  uint64_t v[2];
};

// ---- indices
// Truncates and saturates; NaN becomes the least integer (Indices, kernels/index/indices.h).
template <class T>
__device__ void read_indices(const IndexArguments& a) {
  const T* in = static_cast<const T*>(a.in);
  for (int64_t i = first(); i < a.n; i += step()) {
    if constexpr (std::is_integral_v<T>) {
      a.ids[i] = static_cast<int64_t>(in[i]);
    } else {
      const double x = convert<double>(in[i]);
      a.ids[i] = x == x ? convert<int64_t>(x) : std::numeric_limits<int64_t>::min();
    }
  }
}

inline __device__ void clip_indices(const IndexArguments& a) {
  for (int64_t i = first(); i < a.n; i += step()) {
    const int64_t id = a.ids[i];
    a.ids[i] = id < a.low ? a.low : id > a.high ? a.high : id;
  }
}
inline __device__ void wrap_indices(const IndexArguments& a) {
  for (int64_t i = first(); i < a.n; i += step()) {
    const int64_t rest = a.ids[i] % a.size;
    a.ids[i] = rest < 0 ? rest + a.size : rest;
  }
}
// The indices of two axes become those of the merged axis.
inline __device__ void merge_indices(const IndexArguments& a) {
  for (int64_t i = first(); i < a.n; i += step())
    a.ids[i] = a.ids[i] * a.size + static_cast<const int64_t*>(a.in)[i];
}
// Negative indices count from the end. Indices out of bounds stay: the host looks for the first of them.
inline __device__ void check_indices(const IndexArguments& a) {
  for (int64_t i = first(); i < a.n; i += step()) {
    const int64_t id = a.ids[i];
    if (id < -a.size || id >= a.size)
      *a.outside = 1;
    else if (id < 0)
      a.ids[i] = id + a.size;
  }
}
inline __device__ void find_outside(const IndexArguments& a) {
  for (int64_t i = first(); i < a.n; i += step())
    if (a.ids[i] < a.low || a.ids[i] > a.high) *a.outside = 1;
}

// ---- gather: inner is counted in words
template <class Word>
__device__ void gather_rows(const GatherArguments& a) {
  const Word* in = static_cast<const Word*>(a.in);
  Word* out = static_cast<Word*>(a.out);
  for (int64_t i = first(); i < a.outer * a.count * a.inner; i += step()) {
    const int64_t item = i / a.inner, k = i % a.inner;
    out[i] = in[(item / a.count * a.rows + a.ids[item % a.count]) * a.inner + k];
  }
}
// Only the last of the places with one id reads its row; the others become 0.
template <class Word>
__device__ void gather_last_rows(const GatherArguments& a) {
  const Word* in = static_cast<const Word*>(a.in);
  Word* out = static_cast<Word*>(a.out);
  for (int64_t i = first(); i < a.outer * a.count * a.inner; i += step()) {
    const int64_t item = i / a.inner, m = item % a.count;
    out[i] = a.next[m] < 0 ? in[(item / a.count * a.rows + a.ids[m]) * a.inner + i % a.inner] : Word{};
  }
}
template <class Word>
__device__ void gather_along(const GatherArguments& a) {
  const Word* in = static_cast<const Word*>(a.in);
  Word* out = static_cast<Word*>(a.out);
  for (int64_t i = first(); i < a.outer * a.count * a.inner; i += step())
    out[i] = in[(i / (a.count * a.inner) * a.rows + a.ids[i]) * a.inner + i % a.inner];
}

// ---- scatter
// Links the places of each id. A thread looks for the next place of its id: this is quadratic in the number of ids.
inline __device__ void link_places(const GatherArguments& a) {
  for (int64_t m = first(); m < a.count; m += step()) {
    const int64_t id = a.ids[m];
    int64_t next = m + 1;
    while (next < a.count && a.ids[next] != id) ++next;
    a.next[m] = next < a.count ? next : -1;
    if (next < a.count) a.head[next] = 0;
  }
}
// The same for many ids, whose stable order is known (sort.cuh).
inline __device__ void link_sorted_places(const GatherArguments& a) {
  for (int64_t k = first(); k < a.count; k += step()) {
    const int64_t m = a.order[k], id = a.ids[m];
    a.next[m] = k + 1 < a.count && a.ids[a.order[k + 1]] == id ? a.order[k + 1] : -1;
    a.head[m] = k == 0 || a.ids[a.order[k - 1]] != id;
  }
}
// The last row of each id remains.
template <class Word>
__device__ void scatter_rows(const GatherArguments& a) {
  const Word* in = static_cast<const Word*>(a.in);
  Word* out = static_cast<Word*>(a.out);
  for (int64_t i = first(); i < a.outer * a.count * a.inner; i += step()) {
    const int64_t item = i / a.inner, m = item % a.count;
    if (a.next[m] < 0) out[(item / a.count * a.rows + a.ids[m]) * a.inner + i % a.inner] = in[i];
  }
}
template <class T>
__device__ void scatter_add_rows(const GatherArguments& a) {
  using A = std::conditional_t<is_half<T>, float, T>;
  const T* in = static_cast<const T*>(a.in);
  T* out = static_cast<T*>(a.out);
  for (int64_t i = first(); i < a.outer * a.count * a.inner; i += step()) {
    const int64_t item = i / a.inner, m = item % a.count, o = item / a.count, k = i % a.inner;
    if (!a.head[m] || a.ids[m] < 0 || a.ids[m] >= a.rows) continue;
    A sum = 0;
    for (int64_t place = m; place >= 0; place = a.next[place])
      sum = static_cast<A>(sum + static_cast<A>(in[(o * a.count + place) * a.inner + k]));
    out[(o * a.rows + a.ids[m]) * a.inner + k] = static_cast<T>(sum);
  }
}
// A thread for each (outer, inner) adds in the order of the ids. Halves round after each addition, as on the CPU.
template <class T>
__device__ void scatter_add_along(const GatherArguments& a) {
  using A = std::conditional_t<is_half<T>, float, T>;
  const T* in = static_cast<const T*>(a.in);
  T* out = static_cast<T*>(a.out);
  for (int64_t item = first(); item < a.outer * a.inner; item += step()) {
    const int64_t o = item / a.inner, k = item % a.inner;
    for (int64_t m = 0; m < a.count; ++m) {
      const int64_t from = (o * a.count + m) * a.inner + k;
      T& to = out[(o * a.rows + a.ids[from]) * a.inner + k];
      to = static_cast<T>(static_cast<A>(to) + static_cast<A>(in[from]));
    }
  }
}

}  // namespace hybridnet::device
