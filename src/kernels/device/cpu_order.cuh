// Sums in the order of the CPU's kernels with vectors of 32 bytes, so that their bits are equal. A group of threads
// takes a row: one thread for each lane of four vectors.
#pragma once

#include "kernels/device/kernel.cuh"

namespace hybridnet::device {

template <class T>
inline constexpr int kVectorLanes = 32 / static_cast<int>(sizeof(T));
template <class T>
inline constexpr int kChainThreads = 4 * kVectorLanes<T>;

// The end of a row that is no whole vector.
enum class RowEnd {
  kSequential,  // its elements are added last, one by one (sum_of of batch_norm.cc)
  kPartial      // it is a vector of the second chain (sum_row of memory/vector_rows.h)
};

// The sum of n elements for the group of this thread: sum = add(sum, i) adds element i, rounding as the CPU does (its
// compiler turns a product that is added into one operation). Every thread of the block calls it, every thread of the
// group receives the sum. room: an element of T for each thread.
template <class T, RowEnd kEnd, class Room, class Add>
inline __device__ T chained_sum(int64_t n, Room& room, const Add& add) {
  constexpr int kLanes = kVectorLanes<T>, kGroup = kChainThreads<T>;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kGroup, start = thread - lane;
  T sum = 0;
  int64_t i = 0;
#pragma unroll 4
  for (; i + kGroup <= n; i += kGroup) sum = add(sum, i + lane);
  for (; i + kLanes <= n; i += kLanes)
    if (lane < kLanes) sum = add(sum, i + lane);
  if (kEnd == RowEnd::kPartial && lane >= kLanes && i + lane - kLanes < n && lane < 2 * kLanes)
    sum = add(sum, i + lane - kLanes);
  room[thread] = sum;
  __syncthreads();
  if (lane == 0) {
    T lanes[kLanes];
    for (int j = 0; j < kLanes; ++j) {
      const T a = room[start + j], b = room[start + kLanes + j];
      const T c = room[start + 2 * kLanes + j], d = room[start + 3 * kLanes + j];
      lanes[j] = (a + b) + (c + d);
    }
    for (int width = kLanes / 2; width > 0; width /= 2)
      for (int j = 0; j < width; ++j) lanes[j] = lanes[j] + lanes[j + width];
    T total = lanes[0];
    if (kEnd == RowEnd::kSequential)
      for (; i < n; ++i) total = add(total, i);
    room[start] = total;
  }
  __syncthreads();
  const T total = room[start];
  __syncthreads();
  return total;
}

}  // namespace hybridnet::device
