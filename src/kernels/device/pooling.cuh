// Pooling over 1 to 3 spatial axes and its gradients: a thread for each element of the result, so that nothing is added
// by two threads. Elements are combined in the order of kernels/conv/pooling.cc. kLast: (n, space, c) memory, otherwise
// (n, c, space).
#pragma once

#include <cmath>
#include <limits>

#include "kernels/device/kernel.cuh"
#include "kernels/device/pool_arguments.h"

namespace hybridnet::device {

enum class Pool { kMax, kSum, kAverage, kLp };

// An element of a tensor of shape (n, c, sizes): the position within its image and channel, and the way to elements of
// images of the other size.
struct PoolPlace {
  int64_t at[3];
  int64_t image, channel;
};
template <bool kLast>
inline __device__ PoolPlace place_of(const PoolArguments& a, int64_t index, const int64_t* sizes) {
  const int64_t size = sizes[0] * sizes[1] * sizes[2];
  const int64_t space = kLast ? index / a.c % size : index % size;
  const int64_t channel = kLast ? index % a.c : index / size % a.c, image = index / (size * a.c);
  return {{space / (sizes[1] * sizes[2]), space / sizes[2] % sizes[1], space % sizes[2]}, image, channel};
}
// The index of the first element of an image's channel of `size` positions, and the distance to the next position.
template <bool kLast>
inline __device__ int64_t plane_start(const PoolArguments& a, const PoolPlace& p, int64_t size) {
  return kLast ? p.image * size * a.c + p.channel : (p.image * a.c + p.channel) * size;
}
template <bool kLast>
inline __device__ int64_t plane_step(const PoolArguments& a) {
  return kLast ? a.c : 1;
}
inline __device__ int64_t input_size(const PoolArguments& a) { return a.in[0] * a.in[1] * a.in[2]; }
inline __device__ int64_t output_size(const PoolArguments& a) { return a.out[0] * a.out[1] * a.out[2]; }

// Input elements [first, last) along an axis in the window of output o.
inline __device__ int64_t window_first(const PoolArguments& a, int axis, int64_t o) {
  const int64_t begin = o * a.stride[axis] - a.pad[axis];
  return begin > 0 ? begin : 0;
}
inline __device__ int64_t window_last(const PoolArguments& a, int axis, int64_t o) {
  const int64_t end = o * a.stride[axis] - a.pad[axis] + a.kernel[axis];
  return end < a.in[axis] ? end : a.in[axis];
}
// The number of elements along an axis that an average divides by.
inline __device__ int64_t counted(const PoolArguments& a, int axis, int64_t o) {
  if (!a.count_pad) {
    const int64_t count = window_last(a, axis, o) - window_first(a, axis, o);
    return count > 0 ? count : 0;
  }
  const int64_t begin = o * a.stride[axis] - a.pad[axis], end = begin + a.kernel[axis];
  return (end < a.in[axis] + a.pad[axis] ? end : a.in[axis] + a.pad[axis]) - begin;
}
template <Pool kPool, class T>
inline __device__ T factor_at(const PoolArguments& a, int64_t o0, int64_t o1, int64_t o2) {
  if constexpr (kPool != Pool::kAverage) return T(1);
  const int64_t count = counted(a, 0, o0) * counted(a, 1, o1) * counted(a, 2, o2);
  return count > 0 ? T(1) / static_cast<T>(count) : T(0);
}

template <Pool kPool, class T>
inline __device__ T pool_join(const PoolArguments& a, T acc, T x) {
  if constexpr (kPool == Pool::kMax) {
    if (acc != acc) return acc;  // NaN stays
    return x != x || acc < x ? x : acc;
  } else if constexpr (kPool == Pool::kLp) {
    return a.power == 1 ? acc + x : a.power == 2 ? std::fma(x, x, acc) : std::fma(x * x, x, acc);
  } else {
    return acc + x;
  }
}

template <Pool kPool, class T, bool kLast>
__device__ void pool_forward(const PoolArguments& a) {
  const int64_t n = a.n * a.c * output_size(a), step_of = plane_step<kLast>(a);
  for (int64_t index = first(); index < n; index += step()) {
    const PoolPlace p = place_of<kLast>(a, index, a.out);
    const T* x = static_cast<const T*>(a.x) + plane_start<kLast>(a, p, input_size(a));
    const int64_t i0 = window_first(a, 0, p.at[0]), i1 = window_last(a, 0, p.at[0]);
    const int64_t j0 = window_first(a, 1, p.at[1]), j1 = window_last(a, 1, p.at[1]);
    const int64_t k0 = window_first(a, 2, p.at[2]), k1 = window_last(a, 2, p.at[2]);
    const T start = kPool == Pool::kMax ? -std::numeric_limits<T>::infinity() : T(0);
    const auto element = [&](int64_t i, int64_t j, int64_t k) {
      return x[((i * a.in[1] + j) * a.in[2] + k) * step_of];
    };
    T value = start;
    if constexpr (kLast) {
      for (int64_t i = i0; i < i1; ++i)
        for (int64_t j = j0; j < j1; ++j)
          for (int64_t k = k0; k < k1; ++k) value = pool_join<kPool>(a, value, element(i, j, k));
    } else {
      for (int64_t k = k0; k < k1; ++k) {
        T column = start;
        for (int64_t i = i0; i < i1; ++i)
          for (int64_t j = j0; j < j1; ++j) column = pool_join<kPool>(a, column, element(i, j, k));
        if constexpr (kPool == Pool::kMax)
          value = pool_join<kPool>(a, value, column);
        else
          value = value + column;
      }
    }
    if constexpr (kPool == Pool::kLp) {
      if (a.power == 2) value = std::sqrt(value);
      if (a.power == 3) value = std::cbrt(value);
    }
    if constexpr (kPool == Pool::kSum || kPool == Pool::kAverage)
      value = value * factor_at<kPool, T>(a, p.at[0], p.at[1], p.at[2]);
    static_cast<T*>(a.to)[index] = value;
  }
}

// The position of the first element of a window that equals its maximum, or is NaN if that is; -1 if there is none.
template <class T>
inline __device__ int64_t first_maximum(const PoolArguments& a, const int64_t* o, const T* x, int64_t step_of,
                                        T maximum) {
  for (int64_t i = window_first(a, 0, o[0]); i < window_last(a, 0, o[0]); ++i)
    for (int64_t j = window_first(a, 1, o[1]); j < window_last(a, 1, o[1]); ++j)
      for (int64_t k = window_first(a, 2, o[2]); k < window_last(a, 2, o[2]); ++k) {
        const int64_t at = (i * a.in[1] + j) * a.in[2] + k;
        const T element = x[at * step_of];
        if (element == maximum || (maximum != maximum && element != element)) return at;
      }
  return -1;
}

// Calls f(o, p) for the outputs o, number p, whose windows contain an input position; row() after each row of them.
template <class F, class Row>
inline __device__ void for_each_output(const PoolArguments& a, const int64_t* at, const F& f, const Row& row) {
  int64_t begin[3], end[3], o[3];
  for (int axis = 0; axis < 3; ++axis) {
    const int64_t beyond = at[axis] + a.pad[axis] - a.kernel[axis];
    begin[axis] = beyond < 0 ? 0 : beyond / a.stride[axis] + 1;
    end[axis] = (at[axis] + a.pad[axis]) / a.stride[axis] + 1;
    end[axis] = end[axis] < a.out[axis] ? end[axis] : a.out[axis];
  }
  for (o[0] = begin[0]; o[0] < end[0]; ++o[0])
    for (o[1] = begin[1]; o[1] < end[1]; ++o[1]) {
      for (o[2] = begin[2]; o[2] < end[2]; ++o[2]) f(o, (o[0] * a.out[1] + o[1]) * a.out[2] + o[2]);
      row();
    }
}

template <class T, bool kLast>
__device__ void max_pool_backward(const PoolArguments& a) {
  const int64_t n = a.n * a.c * input_size(a), step_of = plane_step<kLast>(a);
  for (int64_t index = first(); index < n; index += step()) {
    const PoolPlace p = place_of<kLast>(a, index, a.in);
    const T* x = static_cast<const T*>(a.x) + plane_start<kLast>(a, p, input_size(a));
    const int64_t start = plane_start<kLast>(a, p, output_size(a));
    const int64_t own = (p.at[0] * a.in[1] + p.at[1]) * a.in[2] + p.at[2];
    const T element = x[own * step_of];
    T sum = 0;
    for_each_output(
        a, p.at,
        [&](const int64_t* o, int64_t number) {
          const T maximum = static_cast<const T*>(a.y)[start + number * step_of];
          if (element != maximum && !(element != element && maximum != maximum)) return;
          if (first_maximum(a, o, x, step_of, maximum) == own)
            sum = sum + static_cast<const T*>(a.dy)[start + number * step_of];
        },
        [] {});
    static_cast<T*>(a.to)[index] = sum;
  }
}

template <class T, bool kLast>
__device__ void max_pool_gather(const PoolArguments& a) {
  const int64_t n = a.n * a.c * output_size(a), step_of = plane_step<kLast>(a);
  for (int64_t index = first(); index < n; index += step()) {
    const PoolPlace p = place_of<kLast>(a, index, a.out);
    const int64_t start = plane_start<kLast>(a, p, input_size(a));
    const int64_t at =
        first_maximum(a, p.at, static_cast<const T*>(a.x) + start, step_of, static_cast<const T*>(a.y)[index]);
    static_cast<T*>(a.to)[index] = at < 0 ? T(0) : static_cast<const T*>(a.dy)[start + at * step_of];
  }
}

template <Pool kPool, class T, bool kLast>
__device__ void sum_pool_backward(const PoolArguments& a) {
  const int64_t n = a.n * a.c * input_size(a), step_of = plane_step<kLast>(a);
  for (int64_t index = first(); index < n; index += step()) {
    const PoolPlace p = place_of<kLast>(a, index, a.in);
    const T* dy = static_cast<const T*>(a.dy) + plane_start<kLast>(a, p, output_size(a));
    T sum = 0, of_row = 0;
    for_each_output(
        a, p.at,
        [&](const int64_t* o, int64_t number) {
          const T factor = factor_at<kPool, T>(a, o[0], o[1], o[2]);
          if constexpr (kLast)
            sum = std::fma(dy[number * step_of], factor, sum);
          else
            of_row = of_row + dy[number * step_of] * factor;
        },
        [&] {
          if constexpr (!kLast) {
            sum = sum + of_row;
            of_row = 0;
          }
        });
    static_cast<T*>(a.to)[index] = sum;
  }
}

// Bytes (ops/quantized/pooling.cc): the average is rounded to the nearest integer, halves to even.
template <bool kLast, bool kMax, class T>
__device__ inline void pool_bytes(const PoolArguments& a) {
  for (int64_t i = first(); i < a.n * a.c * output_size(a); i += step()) {
    const PoolPlace p = place_of<kLast>(a, i, a.out);
    const T* const x = static_cast<const T*>(a.x) + plane_start<kLast>(a, p, input_size(a));
    int32_t best = std::numeric_limits<T>::min(), sum = 0;
    for (int64_t j = window_first(a, 0, p.at[0]); j < window_last(a, 0, p.at[0]); ++j)
      for (int64_t k = window_first(a, 1, p.at[1]); k < window_last(a, 1, p.at[1]); ++k)
        for (int64_t l = window_first(a, 2, p.at[2]); l < window_last(a, 2, p.at[2]); ++l) {
          const int32_t value = x[((j * a.in[1] + k) * a.in[2] + l) * plane_step<kLast>(a)];
          best = value > best ? value : best;
          sum += value;
        }
    int64_t count = 1;
    for (int axis = 0; axis < 3; ++axis) {
      const int64_t inside = window_last(a, axis, p.at[axis]) - window_first(a, axis, p.at[axis]);
      count *= a.count_pad ? a.kernel[axis] : inside > 0 ? inside : 0;
    }
    const int32_t divisor = static_cast<int32_t>(count > 1 ? count : 1), size = sum < 0 ? -sum : sum;
    const int32_t floor = size / divisor, twice_rest = 2 * (size % divisor);
    const int32_t nearest = floor + (twice_rest > divisor || (twice_rest == divisor && floor % 2 != 0) ? 1 : 0);
    static_cast<T*>(a.to)[i] = static_cast<T>(kMax ? best : sum < 0 ? -nearest : nearest);
  }
}

}  // namespace hybridnet::device
