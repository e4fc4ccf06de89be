// Softmax, its logarithm and their gradients. A group of kGroup threads computes a row; sums are added in float64, in a
// tree that depends on the length and the group alone.
#pragma once

#include <limits>

#include "kernels/device/kernel.cuh"
#include "kernels/device/norm_arguments.h"
#include "kernels/norm/exp_to_one.h"

namespace hybridnet::device {

// The row of this thread's group, and its elements: start + j * inner for j = lane, lane + kGroup, ...
struct Row {
  int64_t number, start, length;
  bool exists;
};
template <int kGroup>
inline __device__ Row row_at(const SoftmaxArguments& a, int64_t base) {
  const int64_t r = base + static_cast<int>(threadIdx.x) / kGroup;
  if (r >= a.rows) return {r, 0, 0, false};
  int64_t length = a.length;
  if (a.lengths) length = a.lengths[r] < 0 ? 0 : a.lengths[r] < length ? a.lengths[r] : length;
  return {r, r / a.inner * a.length * a.inner + r % a.inner, length, true};
}
template <int kGroup>
inline __device__ int lane_of() {
  return static_cast<int>(threadIdx.x) % kGroup;
}

// Joins the values of a group; every thread of the block calls it.
template <int kGroup, class Room, class Join>
inline __device__ double join_group(Room& room, double mine, const Join& join) {
  if constexpr (kGroup == 1) return mine;
  const int thread = static_cast<int>(threadIdx.x), lane = lane_of<kGroup>();
  room[thread] = mine;
  __syncthreads();
  for (int half = kGroup / 2; half > 0; half /= 2) {
    if (lane < half) {
      const double low = room[thread], high = room[thread + half];
      room[thread] = join(low, high);
    }
    __syncthreads();
  }
  const double joined = room[thread - lane];
  __syncthreads();
  return joined;
}
struct Sum {
  __device__ double operator()(double a, double b) const { return a + b; }
};
struct Largest {
  __device__ double operator()(double a, double b) const { return a > b ? a : b; }
};

template <class T>
inline __device__ T exp_to_one(T x) {
  return kernels::N_ONE_LANE::exp_to_one(hwy::N_ONE_LANE::ScalableTag<T>(), x);
}
template <class T>
inline __device__ T logarithm(T x) {
  return kernels::N_ONE_LANE::log(hwy::N_ONE_LANE::ScalableTag<T>(), x);
}

// The largest scaled element of a row, and the sum of e^(x - top).
template <class T, int kGroup, class Room, class Value>
inline __device__ T top_of(const Row& row, Room& room, const Value& value) {
  T top = -std::numeric_limits<T>::infinity();
  for (int64_t j = lane_of<kGroup>(); j < row.length; j += kGroup) {
    const T x = value(j);
    top = x > top ? x : top;
  }
  return static_cast<T>(join_group<kGroup>(room, top, Largest()));
}
template <class T, int kGroup, class Room, class Value>
inline __device__ double sum_of(const Row& row, Room& room, const Value& value) {
  double sum = 0;
  for (int64_t j = lane_of<kGroup>(); j < row.length; j += kGroup) sum += static_cast<double>(value(j));
  return join_group<kGroup>(room, sum, Sum());
}

template <int kGroup>
inline __device__ int64_t first_row() {
  return static_cast<int64_t>(blockIdx.x) * (256 / kGroup);
}
template <int kGroup>
inline __device__ int64_t row_step() {
  return static_cast<int64_t>(gridDim.x) * (256 / kGroup);
}

template <class T, int kGroup, class Room>
__device__ void softmax(const SoftmaxArguments& a, Room& room) {
  const T* x = static_cast<const T*>(a.x);
  T* y = static_cast<T*>(a.out);
  const T scale = static_cast<T>(a.scale);
  for (int64_t base = first_row<kGroup>(); base < a.rows; base += row_step<kGroup>()) {
    const Row row = row_at<kGroup>(a, base);
    const auto at = [&](int64_t j) { return row.start + j * a.inner; };
    const T top = top_of<T, kGroup>(row, room, [&](int64_t j) { return scale * x[at(j)]; });
    const auto distance = [&](int64_t j) { return std::fma(scale, x[at(j)], -top); };
    const T total = static_cast<T>(sum_of<T, kGroup>(row, room, [&](int64_t j) {
      const T e = exp_to_one(distance(j));
      if (!a.log) y[at(j)] = e;
      return e;
    }));
    const T last = a.log ? logarithm(total) : T(1) / total;
    for (int64_t j = lane_of<kGroup>(); j < row.length; j += kGroup)
      y[at(j)] = a.log ? distance(j) - last : y[at(j)] * last;
    if (row.exists)
      for (int64_t j = row.length + lane_of<kGroup>(); j < a.length; j += kGroup) y[at(j)] = T(0);
  }
}

template <class T, int kGroup, class Room>
__device__ void softmax_gradient(const SoftmaxArguments& a, Room& room) {
  const T *dy = static_cast<const T*>(a.dy), *y = static_cast<const T*>(a.x);
  T* dx = static_cast<T*>(a.out);
  const T scale = static_cast<T>(a.scale);
  for (int64_t base = first_row<kGroup>(); base < a.rows; base += row_step<kGroup>()) {
    const Row row = row_at<kGroup>(a, base);
    const auto at = [&](int64_t j) { return row.start + j * a.inner; };
    const T total = static_cast<T>(
        sum_of<T, kGroup>(row, room, [&](int64_t j) { return a.log ? dy[at(j)] : dy[at(j)] * y[at(j)]; }));
    for (int64_t j = lane_of<kGroup>(); j < row.length; j += kGroup) {
      const T g = dy[at(j)], v = y[at(j)];
      dx[at(j)] = a.log ? scale * std::fma(-exp_to_one(v), total, g) : (scale * v) * (g - total);
    }
  }
}

template <class T, int kGroup, class Room>
__device__ void log_softmax_pick(const SoftmaxArguments& a, Room& room) {
  const T* x = static_cast<const T*>(a.x);
  for (int64_t base = first_row<kGroup>(); base < a.rows; base += row_step<kGroup>()) {
    const Row row = row_at<kGroup>(a, base);
    const T* from = x + row.start;
    const T top = top_of<T, kGroup>(row, room, [&](int64_t j) { return from[j]; });
    const T sum = static_cast<T>(
        sum_of<T, kGroup>(row, room, [&](int64_t j) { return exp_to_one(static_cast<T>(from[j] - top)); }));
    if (!row.exists || lane_of<kGroup>() != 0) continue;
    const T log_sum = logarithm(sum);
    static_cast<T*>(a.picked)[row.number] = (from[a.index[row.number]] - top) - log_sum;
    if (a.total) static_cast<T*>(a.total)[row.number] = top + log_sum;
  }
}

// One thread for each element.
template <class T>
__device__ void log_softmax_pick_gradient(const SoftmaxArguments& a) {
  const T *x = static_cast<const T*>(a.x), *dy = static_cast<const T*>(a.dy), *total = static_cast<const T*>(a.total);
  T* dx = static_cast<T*>(a.out);
  for (int64_t i = first(); i < a.rows * a.length; i += step()) {
    const int64_t r = i / a.length;
    T change = -dy[r] * exp_to_one(static_cast<T>(x[i] - total[r]));
    if (i % a.length == a.index[r]) change += dy[r];
    dx[i] = change;
  }
}

}  // namespace hybridnet::device
