// Batches of sequences of different lengths, padded to one length. T: an unsigned integer of an element's size, except
// in mask_sequences, which writes a value.
#pragma once

#include "kernels/device/elements.cuh"
#include "kernels/device/values_arguments.h"

namespace hybridnet::device {

struct SequencePlace {
  int64_t t, n, at;  // time, sequence, position in the row
};
__device__ inline SequencePlace place_of(const SequenceArguments& a, int64_t i) {
  const int64_t row = i / a.inner, other = a.time_first ? a.batch : a.time;
  const int64_t major = row / other, minor = row - major * other;
  return {a.time_first ? major : minor, a.time_first ? minor : major, i - row * a.inner};
}
__device__ inline int64_t row_of(const SequenceArguments& a, int64_t t, int64_t n) {
  return a.time_first ? t * a.batch + n : n * a.time + t;
}

// Overwrites what follows the end of a sequence.
template <class T>
__device__ inline void mask_sequences(const SequenceArguments& a) {
  const T value = convert<T>(a.value);
  for (int64_t i = first(); i < a.time * a.batch * a.inner; i += step()) {
    const SequencePlace p = place_of(a, i);
    if (p.t >= a.lengths[p.n]) static_cast<T*>(a.out)[i] = value;
  }
}

template <class T>
__device__ inline void last_of_sequences(const SequenceArguments& a) {
  for (int64_t i = first(); i < a.batch * a.inner; i += step()) {
    const int64_t n = i / a.inner, last = (a.lengths ? a.lengths[n] : a.time) - 1;
    static_cast<T*>(a.out)[i] = static_cast<const T*>(a.in)[row_of(a, last, n) * a.inner + i % a.inner];
  }
}

// in: a row for each sequence, written to its last place; the other places are zero.
template <class T>
__device__ inline void spread_last(const SequenceArguments& a) {
#pragma unroll 1  // unrolled, it spills around the divisions of 64-bit integers
  for (int64_t i = first(); i < a.time * a.batch * a.inner; i += step()) {
    const SequencePlace p = place_of(a, i);
    const int64_t last = (a.lengths ? a.lengths[p.n] : a.time) - 1;
    static_cast<T*>(a.out)[i] = p.t == last ? static_cast<const T*>(a.in)[p.n * a.inner + p.at] : T(0);
  }
}

template <class T>
__device__ inline void reverse_sequences(const SequenceArguments& a) {
  for (int64_t i = first(); i < a.time * a.batch * a.inner; i += step()) {
    const SequencePlace p = place_of(a, i);
    const int64_t length = a.lengths ? a.lengths[p.n] : a.time, from = p.t < length ? length - 1 - p.t : p.t;
    static_cast<T*>(a.out)[i] = static_cast<const T*>(a.in)[row_of(a, from, p.n) * a.inner + p.at];
  }
}

}  // namespace hybridnet::device
