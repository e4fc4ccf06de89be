// Normalization of contiguous rows, in the order of sums of kernels/norm/layer_norm.cc. kCenters: LayerNorm; otherwise
// RMSNorm, whose mean is 0 and which has no shift.
#pragma once

#include <cmath>

#include "kernels/device/cpu_order.cuh"
#include "kernels/device/norm_arguments.h"
#include "kernels/device/random.cuh"

namespace hybridnet::device {

// The factor of Dropout for an element: 0 or 1 / keep.
template <class T>
inline __device__ T kept_factor(const NormArguments& a, int64_t element) {
  if (a.keep >= 1) return T(1);
  const RngKey key = a.key ? RngKey{a.key[0], a.key[1]} : RngKey{a.seed, a.stream};
  const bool kept = drawn(key, static_cast<uint64_t>(a.keep * 4294967296.0), element);
  return kept ? static_cast<T>(1 / a.keep) : T(0);
}

template <class T, bool kCenters, class Room>
__device__ void normalize_rows(const NormArguments& a, Room& room) {
  constexpr int kGroup = kChainThreads<T>, kGroups = 256 / kGroup;
  const int lane = static_cast<int>(threadIdx.x) % kGroup;
  const T *gamma = static_cast<const T*>(a.gamma), *beta = static_cast<const T*>(a.beta);
  const T share = T(1) / static_cast<T>(a.width);
  for (int64_t base = static_cast<int64_t>(blockIdx.x) * kGroups; base < a.rows;
       base += static_cast<int64_t>(gridDim.x) * kGroups) {
    const int64_t r = base + static_cast<int>(threadIdx.x) / kGroup, width = r < a.rows ? a.width : 0;
    const T* x = static_cast<const T*>(a.x) + r * a.width;
    T* y = static_cast<T*>(a.y) + r * a.width;
    if (a.addend) {
      // The sum is stored first: other threads of the group read it.
      const T* addend = static_cast<const T*>(a.addend) + r * a.width;
      T* sum = static_cast<T*>(a.sum ? a.sum : a.y) + r * a.width;
      for (int64_t i = lane; i < width; i += kGroup)
        sum[i] = a.keep < 1 ? std::fma(x[i], kept_factor<T>(a, r * a.width + i), addend[i]) : x[i] + addend[i];
      x = sum;
      __syncthreads();
    }
    const auto centered = [&](int64_t i, T mean) { return kCenters ? x[i] - mean : x[i]; };
    T mean = 0;
    if constexpr (kCenters)
      mean = chained_sum<T, RowEnd::kPartial>(width, room, [&](T acc, int64_t i) { return acc + x[i]; }) * share;
    const T variance =
        chained_sum<T, RowEnd::kPartial>(
            width, room, [&](T acc, int64_t i) { return std::fma(centered(i, mean), centered(i, mean), acc); }) *
        share;
    const T deviation = std::sqrt(variance + static_cast<T>(a.eps)), inverse = T(1) / deviation;
    for (int64_t i = lane; i < width; i += kGroup) {
      const T h = centered(i, mean) * inverse;
      y[i] = kCenters ? std::fma(h, gamma[i], beta[i]) : h * gamma[i];
    }
    if (lane != 0 || r >= a.rows) continue;
    if (a.mean_out) static_cast<T*>(a.mean_out)[r] = mean;
    if (a.std_out) static_cast<T*>(a.std_out)[r] = deviation;
  }
}

// Column sums over blocks of rows: a thread for each block and column.
template <class T, bool kCenters>
__device__ void norm_columns(const NormArguments& a) {
  const T *x = static_cast<const T*>(a.x), *dy = static_cast<const T*>(a.dy);
  for (int64_t item = first(); item < a.blocks * a.width; item += step()) {
    const int64_t column = item % a.width, begin = item / a.width * a.block_rows;
    const int64_t end = begin + a.block_rows < a.rows ? begin + a.block_rows : a.rows;
    T of_gamma = 0, of_beta = 0;
    for (int64_t r = begin; r < end; ++r) {
      const T mean = kCenters ? static_cast<const T*>(a.mean)[r] : T(0),
              inverse = T(1) / static_cast<const T*>(a.std)[r];
      const T g = dy[r * a.width + column], value = x[r * a.width + column];
      of_gamma = std::fma(g, (kCenters ? value - mean : value) * inverse, of_gamma);
      of_beta = of_beta + g;
    }
    static_cast<T*>(a.partial_gamma)[item] = of_gamma;
    if constexpr (kCenters) static_cast<T*>(a.partial_beta)[item] = of_beta;
  }
}

template <class T>
__device__ void norm_join_columns(const NormArguments& a) {
  const auto total = [&](const void* partial, void* out, int64_t column) {
    if (!out) return;
    double sum = 0;
    for (int64_t b = 0; b < a.blocks; ++b)
      sum += static_cast<double>(static_cast<const T*>(partial)[b * a.width + column]);
    static_cast<T*>(out)[column] = static_cast<T>(sum);
  };
  for (int64_t column = first(); column < a.width; column += step()) {
    total(a.partial_gamma, a.dgamma, column);
    total(a.partial_beta, a.dbeta, column);
  }
}

// Gradients of the rows. The CPU adds in one chain of vectors; sums are added in four chains here.
template <class T, bool kCenters, class Room>
__device__ void norm_gradient_rows(const NormArguments& a, Room& room) {
  constexpr int kGroup = kChainThreads<T>, kGroups = 256 / kGroup;
  const int lane = static_cast<int>(threadIdx.x) % kGroup;
  const T* gamma = static_cast<const T*>(a.gamma);
  const T share = T(1) / static_cast<T>(a.width);
  for (int64_t base = static_cast<int64_t>(blockIdx.x) * kGroups; base < a.rows;
       base += static_cast<int64_t>(gridDim.x) * kGroups) {
    const int64_t r = base + static_cast<int>(threadIdx.x) / kGroup, width = r < a.rows ? a.width : 0;
    const int64_t start = r * a.width;
    const T *x = static_cast<const T*>(a.x) + start, *dy = static_cast<const T*>(a.dy) + start;
    const T mean = kCenters && width > 0 ? static_cast<const T*>(a.mean)[r] : T(0);
    const T inverse = width > 0 ? T(1) / static_cast<const T*>(a.std)[r] : T(0);
    const auto h = [&](int64_t i) { return (kCenters ? x[i] - mean : x[i]) * inverse; };
    T shift = 0;
    if constexpr (kCenters)
      shift = chained_sum<T, RowEnd::kPartial>(width, room, [&](T acc, int64_t i) { return acc + dy[i] * gamma[i]; }) *
              share;
    const T slope = chained_sum<T, RowEnd::kPartial>(
                        width, room, [&](T acc, int64_t i) { return std::fma(dy[i] * gamma[i], h(i), acc); }) *
                    share;
    for (int64_t i = lane; i < width; i += kGroup) {
      T w = dy[i] * gamma[i];
      if constexpr (kCenters) w = w - shift;
      T result = std::fma(-h(i), slope, w) * inverse;
      if (a.of_sum) result = result + static_cast<const T*>(a.of_sum)[start + i];
      if (a.of_data)
        static_cast<T*>(a.of_data)[start + i] = a.keep < 1 ? result * kept_factor<T>(a, start + i) : result;
      static_cast<T*>(a.y)[start + i] = result;
    }
  }
}

}  // namespace hybridnet::device
