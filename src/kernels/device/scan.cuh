// Cumulative sums, and the position of the largest or smallest element, along the middle axis of an (outer, length,
// inner) array.
#pragma once

#include "kernels/device/accumulators.cuh"
#include "kernels/device/reduce_arguments.h"

namespace hybridnet::device {

// ---- cumulative sums
// The part of a sequence that a thread sums, in the order of the sum.
struct ScanPart {
  int64_t base, begin, end;  // element i is at base + i * inner
};
inline __device__ ScanPart scan_part(const ScanArguments& a, int64_t item) {
  const int64_t k = item % a.inner, part = item / a.inner % a.parts, o = item / a.inner / a.parts;
  const int64_t begin = part * a.part_rows;
  return {o * a.length * a.inner + k, begin, begin + a.part_rows < a.length ? begin + a.part_rows : a.length};
}
inline __device__ int64_t scan_row(const ScanArguments& a, int64_t i) { return a.from_end ? a.length - 1 - i : i; }

// The sum of each part.
template <class T, class A>
__device__ void scan_totals(const ScanArguments& a) {
  const T* in = static_cast<const T*>(a.in);
  for (int64_t item = first(); item < a.outer * a.parts * a.inner; item += step()) {
    const ScanPart part = scan_part(a, item);
    A sum = 0;
    for (int64_t i = part.begin; i < part.end; ++i)
      sum += static_cast<A>(convert<std::conditional_t<std::is_floating_point_v<A>, A, int64_t>>(
          in[part.base + scan_row(a, i) * a.inner]));
    static_cast<A*>(a.totals)[item] = sum;
  }
}

// Replaces the sum of each part by the sum of the parts before it.
template <class A>
__device__ void scan_starts(const ScanArguments& a) {
  for (int64_t item = first(); item < a.outer * a.inner; item += step()) {
    A* totals = static_cast<A*>(a.totals) + item / a.inner * a.parts * a.inner + item % a.inner;
    A sum = 0;
    for (int64_t part = 0; part < a.parts; ++part) {
      const A total = totals[part * a.inner];
      totals[part * a.inner] = sum;
      sum += total;
    }
  }
}

template <class T, class A, class Out>
__device__ void scan_parts(const ScanArguments& a) {
  const T* in = static_cast<const T*>(a.in);
  Out* out = static_cast<Out*>(a.out);
  for (int64_t item = first(); item < a.outer * a.parts * a.inner; item += step()) {
    const ScanPart part = scan_part(a, item);
    A sum = a.totals ? static_cast<const A*>(a.totals)[item] : A(0);
    for (int64_t i = part.begin; i < part.end; ++i) {
      const int64_t at = part.base + scan_row(a, i) * a.inner;
      sum += static_cast<A>(convert<std::conditional_t<std::is_floating_point_v<A>, A, int64_t>>(in[at]));
      out[at] = convert<Out>(static_cast<std::conditional_t<std::is_floating_point_v<A>, A, int64_t>>(sum));
    }
  }
}

// ---- positions of extremes
// True if x is better than the best element so far. NaN beats everything but NaN.
template <bool kMax, class T>
inline __device__ bool beats(T x, T best) {
  if (x != x) return best == best;
  return kMax ? x > best : x < best;
}

template <class T>
using compared_t = std::conditional_t<is_half<T>, float, std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>>;

// The position of the extreme among positions candidate(0), candidate(1) ... , which ascend.
template <bool kMax, class T, class Candidate>
inline __device__ int64_t best_of(const T* column, int64_t stride, int64_t count, const Candidate& candidate) {
  using C = compared_t<T>;
  int64_t at = candidate(0);
  C best = convert<C>(column[at * stride]);
  for (int64_t i = 1; i < count; ++i) {
    const int64_t position = candidate(i);
    const C x = convert<C>(column[position * stride]);
    if (beats<kMax>(x, best)) best = x, at = position;
  }
  return at;
}

// A thread for each output, or each of its parts.
template <bool kMax, class T, class Out>
__device__ void extreme_parts(const ExtremeArguments& a) {
  const T* in = static_cast<const T*>(a.in);
  const int64_t outputs = a.outer * a.inner;
  for (int64_t item = first(); item < outputs * a.parts; item += step()) {
    const int64_t part = item / outputs, output = item % outputs, begin = part * a.part_rows;
    const int64_t rest = a.length - begin, count = rest < a.part_rows ? rest : a.part_rows;
    const T* column = in + output / a.inner * a.length * a.inner + output % a.inner;
    const int64_t at = best_of<kMax>(column, a.inner, count, [&](int64_t i) { return begin + i; });
    if (a.parts > 1)
      a.positions[item] = at;
    else
      static_cast<Out*>(a.out)[output] = convert<Out>(at);
  }
}

template <bool kMax, class T, class Out>
__device__ void extreme_join(const ExtremeArguments& a) {
  const T* in = static_cast<const T*>(a.in);
  const int64_t outputs = a.outer * a.inner;
  for (int64_t output = first(); output < outputs; output += step()) {
    const T* column = in + output / a.inner * a.length * a.inner + output % a.inner;
    const int64_t at =
        best_of<kMax>(column, a.inner, a.parts, [&](int64_t part) { return a.positions[part * outputs + output]; });
    static_cast<Out*>(a.out)[output] = convert<Out>(at);
  }
}

}  // namespace hybridnet::device
