// Normalization of rows that blocks of threads sum: GroupNorm, InstanceNorm, L2Normalization. Sums are float64 trees.
#pragma once

#include <cmath>

#include "kernels/device/elements.cuh"
#include "kernels/device/values_arguments.h"

namespace hybridnet::device {

// The sum of f(0), ..., f(n - 1) for all threads of the block. Every thread calls it.
template <class F>
__device__ inline double block_sum(int64_t n, HN_SHARED_POINTER(double) room, const F& f) {
  double sum = 0;
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) sum += static_cast<double>(f(i));
  room[threadIdx.x] = sum;
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) {
      const double left = room[threadIdx.x], right = room[threadIdx.x + half];
      room[threadIdx.x] = left + right;
    }
  }
  __syncthreads();
  const double total = room[0];
  __syncthreads();
  return total;
}

// first: means, null if not wanted; second: variances or standard deviations.
template <class T>
__device__ inline void normalize_groups(const GroupArguments& a, HN_SHARED_POINTER(double) room) {
  for (int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) {
    const T* const x = static_cast<const T*>(a.x) + row * a.size;
    const double mean = block_sum(a.size, room, [&](int64_t i) { return x[i]; }) / static_cast<double>(a.size);
    const double var = block_sum(a.size, room,
                                 [&](int64_t i) {
                                   const double d = static_cast<double>(x[i]) - mean;
                                   return d * d;
                                 }) /
                       static_cast<double>(a.size);
    const double deviation = std::sqrt(var + a.eps);
    const int64_t g = row % a.groups;
    const T factor = static_cast<T>(static_cast<double>(static_cast<const T*>(a.gamma)[g]) / deviation);
    const T shift = static_cast<const T*>(a.beta)[g], center = static_cast<T>(mean);
    T* const y = static_cast<T*>(a.out) + row * a.size;
    for (int64_t i = threadIdx.x; i < a.size; i += blockDim.x) y[i] = (x[i] - center) * factor + shift;
    if (threadIdx.x != 0) continue;
    if (a.first) static_cast<T*>(a.first)[row] = center;
    if (a.second) static_cast<T*>(a.second)[row] = static_cast<T>(a.variance ? var : deviation);
  }
}

// spread: standard deviations. sums: of dy, and of dy * (x - mean) / std.
template <class T>
__device__ inline void differentiate_groups(const GroupArguments& a, HN_SHARED_POINTER(double) room) {
  for (int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) {
    const T *const x = static_cast<const T*>(a.x) + row * a.size, *const d = static_cast<const T*>(a.dy) + row * a.size;
    const T center = static_cast<const T*>(a.mean)[row];
    const double inverse = 1 / static_cast<double>(static_cast<const T*>(a.spread)[row]);
    const double count = static_cast<double>(a.size);
    const double sum_d = block_sum(a.size, room, [&](int64_t i) { return d[i]; });
    const double sum_dx =
        block_sum(a.size, room, [&](int64_t i) { return static_cast<double>(d[i]) * (x[i] - center); }) * inverse;
    const T factor = static_cast<T>(static_cast<double>(static_cast<const T*>(a.gamma)[row % a.groups]) * inverse);
    const T shift = static_cast<T>(sum_d / count), slope = static_cast<T>(sum_dx / count * inverse);
    T* const to = static_cast<T*>(a.out) + row * a.size;
    for (int64_t i = threadIdx.x; i < a.size; i += blockDim.x)
      to[i] = factor * (d[i] - shift - (x[i] - center) * slope);
    if (threadIdx.x != 0) continue;
    a.sums[2 * row] = sum_d;
    a.sums[2 * row + 1] = sum_dx;
  }
}

// first: gradients of gamma; second: of beta.
template <class T>
__device__ inline void join_groups(const GroupArguments& a) {
  for (int64_t g = first(); g < a.groups; g += step()) {
    double of_gamma = 0, of_beta = 0;
    for (int64_t row = g; row < a.rows; row += a.groups) {
      of_beta += a.sums[2 * row];
      of_gamma += a.sums[2 * row + 1];
    }
    static_cast<T*>(a.first)[g] = static_cast<T>(of_gamma);
    static_cast<T*>(a.second)[g] = static_cast<T>(of_beta);
  }
}

// Divides rows by their norms, which `first` receives.
template <class T>
__device__ inline void l2_rows(const GroupArguments& a, HN_SHARED_POINTER(double) room) {
  for (int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) {
    const T* const x = static_cast<const T*>(a.x) + row * a.size;
    T* const y = static_cast<T*>(a.out) + row * a.size;
    const double norm = std::sqrt(
        block_sum(a.size, room, [&](int64_t i) { return static_cast<double>(x[i]) * static_cast<double>(x[i]); }) +
        a.eps);
    const T factor = static_cast<T>(1 / norm);
    for (int64_t i = threadIdx.x; i < a.size; i += blockDim.x) y[i] = x[i] * factor;
    if (threadIdx.x == 0) static_cast<T*>(a.first)[row] = static_cast<T>(norm);
  }
}

// (rows, groups, size): one norm for each (row, position), over the groups; a thread for each norm.
template <class T>
__device__ inline void l2_channels(const GroupArguments& a) {
  for (int64_t i = first(); i < a.rows * a.size; i += step()) {
    const int64_t begin = i / a.size * a.groups * a.size + i % a.size;
    const T* const x = static_cast<const T*>(a.x) + begin;
    T* const y = static_cast<T*>(a.out) + begin;
    double sum = 0;
    for (int64_t c = 0; c < a.groups; ++c)
      sum += static_cast<double>(x[c * a.size]) * static_cast<double>(x[c * a.size]);
    const double norm = std::sqrt(sum + a.eps);
    static_cast<T*>(a.first)[i] = static_cast<T>(norm);
    const T factor = static_cast<T>(1 / norm);
    for (int64_t c = 0; c < a.groups; ++c) y[c * a.size] = x[c * a.size] * factor;
  }
}

}  // namespace hybridnet::device
