// Normalization per channel of (outer, channels, inner), with the blocks and the order of sums of
// kernels/norm/batch_norm.cc.
#pragma once

#include <cmath>

#include "kernels/device/cpu_order.cuh"
#include "kernels/device/norm_arguments.h"

namespace hybridnet::device {

// dy where the value (x - mean) * scale + shift of the layer is above zero; NaN values pass through.
template <class T>
inline __device__ T masked_gradient(const ChannelArguments& a, T dy, T distance, int64_t c) {
  if (!a.relu) return dy;
  const T value = std::fma(distance, static_cast<const T*>(a.scale)[c], static_cast<const T*>(a.shift)[c]);
  return value <= T(0) ? T(0) : value != value ? value : dy;
}

// ---- sums over blocks: kGradient: of dy and dy * (x - mean); otherwise the mean and the sum of squared distances
// Channels-last: a thread for each block and channel.
template <class T, bool kGradient>
__device__ void channel_rows(const ChannelArguments& a) {
  const T *x = static_cast<const T*>(a.x), *dy = static_cast<const T*>(a.dy);
  for (int64_t item = first(); item < a.blocks * a.channels; item += step()) {
    const int64_t c = item % a.channels, begin = item / a.channels * a.block_rows;
    const int64_t end = begin + a.block_rows < a.outer ? begin + a.block_rows : a.outer;
    T sum = 0, second = 0;
    if constexpr (kGradient) {
      const T mean = static_cast<const T*>(a.mean)[c];
      for (int64_t r = begin; r < end; ++r) {
        const int64_t at = r * a.channels + c;
        const T distance = x[at] - mean, g = masked_gradient(a, dy[at], distance, c);
        sum = sum + g;
        second = std::fma(g, distance, second);
      }
    } else {
      for (int64_t r = begin; r < end; ++r) sum = sum + x[r * a.channels + c];
      sum = sum * (T(1) / static_cast<T>(end - begin));
      for (int64_t r = begin; r < end; ++r) {
        const T distance = x[r * a.channels + c] - sum;
        second = std::fma(distance, distance, second);
      }
    }
    static_cast<T*>(a.partial_first)[item] = sum;
    static_cast<T*>(a.partial_second)[item] = second;
  }
}

// Planes: a group of threads for each part of a plane.
template <class T, bool kGradient, class Room>
__device__ void channel_planes(const ChannelArguments& a, Room& room) {
  constexpr int kGroup = kChainThreads<T>, kGroups = 256 / kGroup;
  const int64_t n = a.outer * a.channels * a.split;
  for (int64_t base = static_cast<int64_t>(blockIdx.x) * kGroups; base < n;
       base += static_cast<int64_t>(gridDim.x) * kGroups) {
    const int64_t item = base + static_cast<int>(threadIdx.x) / kGroup, plane = item / a.split, part = item % a.split;
    const int64_t c = plane % a.channels, begin = part * a.block_rows;
    const int64_t rest = a.inner - begin, count = item >= n ? 0 : rest < a.block_rows ? rest : a.block_rows;
    const T* x = static_cast<const T*>(a.x) + plane * a.inner + begin;
    T sum, second;
    if constexpr (kGradient) {
      const T* dy = static_cast<const T*>(a.dy) + plane * a.inner + begin;
      const T mean = static_cast<const T*>(a.mean)[c];
      const auto gradient = [&](int64_t i) { return masked_gradient(a, dy[i], static_cast<T>(x[i] - mean), c); };
      sum = chained_sum<T, RowEnd::kSequential>(count, room, [&](T acc, int64_t i) { return acc + gradient(i); });
      second = chained_sum<T, RowEnd::kSequential>(
          count, room, [&](T acc, int64_t i) { return std::fma(gradient(i), x[i] - mean, acc); });
    } else {
      sum = chained_sum<T, RowEnd::kSequential>(count, room, [&](T acc, int64_t i) { return acc + x[i]; }) /
            static_cast<T>(count);
      second = chained_sum<T, RowEnd::kSequential>(
          count, room, [&](T acc, int64_t i) { return std::fma(x[i] - sum, x[i] - sum, acc); });
    }
    if (item < n && static_cast<int>(threadIdx.x) % kGroup == 0) {
      const int64_t to = (plane / a.channels * a.split + part) * a.channels + c;
      static_cast<T*>(a.partial_first)[to] = sum;
      static_cast<T*>(a.partial_second)[to] = second;
    }
  }
}

inline __device__ int64_t elements_of_block(const ChannelArguments& a, int64_t block) {
  const int64_t size = a.inner == 1 ? a.outer : a.inner;
  const int64_t rest = size - (a.inner == 1 ? block : block % a.split) * a.block_rows;
  return rest < a.block_rows ? rest : a.block_rows;
}

// Joins the means and squared distances of the blocks by the formula of Chan, Golub and LeVeque.
template <class T>
__device__ void channel_join_moments(const ChannelArguments& a) {
  const T *means = static_cast<const T*>(a.partial_first), *squares = static_cast<const T*>(a.partial_second);
  for (int64_t c = first(); c < a.channels; c += step()) {
    double total_mean = 0, total_square = 0, count = 0;
    for (int64_t b = 0; b < a.blocks; ++b) {
      const double more = static_cast<double>(elements_of_block(a, b));
      const double distance = static_cast<double>(means[b * a.channels + c]) - total_mean;
      total_square +=
          static_cast<double>(squares[b * a.channels + c]) + distance * distance * count * more / (count + more);
      total_mean += distance * more / (count + more);
      count += more;
    }
    static_cast<T*>(a.first)[c] = static_cast<T>(total_mean);
    static_cast<T*>(a.second)[c] = static_cast<T>(count > 0 ? total_square / count : 0.0);
  }
}

template <class T>
__device__ void channel_join_sums(const ChannelArguments& a) {
  const T *one = static_cast<const T*>(a.partial_first), *two = static_cast<const T*>(a.partial_second);
  for (int64_t c = first(); c < a.channels; c += step()) {
    double sum = 0, product = 0;
    for (int64_t b = 0; b < a.blocks; ++b) {
      sum += static_cast<double>(one[b * a.channels + c]);
      product += static_cast<double>(two[b * a.channels + c]);
    }
    static_cast<T*>(a.first)[c] = static_cast<T>(sum);
    static_cast<T*>(a.second)[c] = static_cast<T>(product);
  }
}

// ---- elementwise
template <class T>
__device__ void channel_normalize(const ChannelArguments& a) {
  const T* x = static_cast<const T*>(a.x);
  for (int64_t i = first(); i < a.outer * a.channels * a.inner; i += step()) {
    const int64_t c = i / a.inner % a.channels;
    const T value = std::fma(x[i] - static_cast<const T*>(a.mean)[c], static_cast<const T*>(a.scale)[c],
                             static_cast<const T*>(a.shift)[c]);
    static_cast<T*>(a.out)[i] = a.relu && value <= T(0) ? T(0) : value;  // NaN stays
  }
}

template <class T>
__device__ void channel_gradient(const ChannelArguments& a) {
  const T *x = static_cast<const T*>(a.x), *dy = static_cast<const T*>(a.dy);
  for (int64_t i = first(); i < a.outer * a.channels * a.inner; i += step()) {
    const int64_t c = i / a.inner % a.channels;
    const T distance = x[i] - static_cast<const T*>(a.mean)[c], g = masked_gradient(a, dy[i], distance, c);
    static_cast<T*>(a.out)[i] =
        static_cast<const T*>(a.factor)[c] *
        std::fma(-distance, static_cast<const T*>(a.slope)[c], g - static_cast<const T*>(a.offset)[c]);
  }
}

}  // namespace hybridnet::device
