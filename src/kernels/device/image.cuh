// Images: changes of colors, flips, changes of layout and resizing.
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/device/accumulators.cuh"
#include "kernels/device/image_arguments.h"
#include "kernels/functors/colors.h"

namespace hybridnet::device {

// An element of an integer type saturates; NaN becomes 0.
template <class T>
inline __device__ T saturated(double value) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    constexpr T low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
    constexpr double below = static_cast<double>(low) - 1, beyond = static_cast<double>(high / 2 + 1) * 2;
    if (value > below && value < beyond) return static_cast<T>(value);
    return value < 0 ? low : value > 0 ? high : T(0);
  } else {
    return convert<T>(value);
  }
}

// ---- colors: a thread for each pixel

inline __device__ double rounded(const ColorArguments& a, double v) {
  if (a.rounds == 0) return v;
  if (a.rounds == 1) return std::trunc(v);
  return std::trunc(v < 0.0 ? 0.0 : v > 255.0 ? 255.0 : v);
}

inline __device__ void scale_colors(const ColorArguments& a) {
  for (int64_t i = first(); i < a.pixels * a.channels; i += step()) a.values[i] = rounded(a, a.values[i] * a.factor);
}

// One block: its threads compute luminances, and the first one adds them in the order of the CPU.
inline __device__ void mean_luminance(const ColorArguments& a, HN_SHARED_POINTER(double) room) {
  double sum = 0;
  for (int64_t begin = 0; begin < a.pixels; begin += blockDim.x) {
    const int64_t i = begin + threadIdx.x;
    if (i < a.pixels) room[threadIdx.x] = kernels::luminance(a.values + i * a.channels, a.channels);
    __syncthreads();
    const int64_t count = a.pixels - begin < blockDim.x ? a.pixels - begin : blockDim.x;
    if (threadIdx.x == 0)
      for (int64_t k = 0; k < count; ++k) {
        const double value = room[k];
        sum += value;
      }
    __syncthreads();
  }
  if (threadIdx.x == 0 && blockIdx.x == 0) *a.mean = sum / static_cast<double>(a.pixels);
}

inline __device__ void contrast_colors(const ColorArguments& a) {
  const double rest = (1 - a.factor) * *a.mean;
  for (int64_t i = first(); i < a.pixels; i += step())
    for (int64_t c = 0; c < a.channels; ++c) {
      double& v = a.values[i * a.channels + c];
      v = rounded(a, v * a.factor + rest);
    }
}

inline __device__ void saturate_colors(const ColorArguments& a) {
  for (int64_t i = first(); i < a.pixels; i += step()) {
    double* const pixel = a.values + 3 * i;
    const double rest = (1 - a.factor) * kernels::luminance(pixel, 3);
    for (int c = 0; c < 3; ++c) pixel[c] = rounded(a, pixel[c] * a.factor + rest);
  }
}

inline __device__ void rotate_hues(const ColorArguments& a) {
  for (int64_t i = first(); i < a.pixels; i += step()) {
    kernels::rotate_hue(a.values + 3 * i, a.factor);
    for (int c = 0; c < 3; ++c) a.values[3 * i + c] = rounded(a, a.values[3 * i + c]);
  }
}

inline __device__ void light_colors(const ColorArguments& a) {
  for (int64_t i = first(); i < a.pixels; i += step())
    for (int c = 0; c < 3; ++c) a.values[3 * i + c] = rounded(a, a.values[3 * i + c] + a.shift[c]);
}

template <class T>
__device__ inline void store_colors(const ColorArguments& a) {
  for (int64_t i = first(); i < a.n; i += step()) static_cast<T*>(a.out)[i] = saturated<T>(a.values[i]);
}

// ---- layout

// T: an unsigned integer of an element's size.
template <class T>
__device__ inline void flip_if(const FlipArguments& a) {
  const bool flips = *a.condition != 0;
  for (int64_t i = first(); i < a.n; i += step()) {
    const int64_t row = i / a.inner, at = row % a.size;
    const int64_t from = flips ? (row - at + a.size - 1 - at) * a.inner + i % a.inner : i;
    static_cast<T*>(a.out)[i] = static_cast<const T*>(a.in)[from];
  }
}

// out (batch, channels, pixels) = (in - mean) / deviation, channel by channel.
template <class T>
__device__ inline void normalize_channels(const NormalizeArguments& a) {
  using A = accumulator_t<T>;
  for (int64_t i = first(); i < a.n; i += step()) {
    const int64_t c = i / a.pixels % a.channels;
    const A mean = static_cast<A>(a.mean[c]), deviation = static_cast<A>(a.deviation[c]);
    static_cast<T*>(a.out)[i] = convert<T>((convert<A>(static_cast<const T*>(a.in)[i]) - mean) / deviation);
  }
}

// out (batch, channels, pixels) = in (batch, pixels, channels) / 255.
template <class T>
__device__ inline void channels_first(const NormalizeArguments& a) {
  using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;
  for (int64_t i = first(); i < a.n; i += step()) {
    const int64_t pixel = i % a.pixels, c = i / a.pixels % a.channels, image = i / a.pixels / a.channels;
    const Real value = convert<Real>(static_cast<const T*>(a.in)[(image * a.pixels + pixel) * a.channels + c]);
    static_cast<float*>(a.out)[i] = static_cast<float>(value / Real(255));
  }
}

// ---- resizing: a thread for each element of the result, which adds in the order of the CPU

template <class T>
using resize_sum_t = std::conditional_t<std::is_same_v<T, double>, double, float>;

// Integers are rounded to nearest, halves to even.
template <class T, class A>
inline __device__ T from_resize_sum(A value) {
  if constexpr (std::is_integral_v<T>)
    return saturated<T>(std::rint(static_cast<double>(value)));
  else
    return convert<T>(value);
}

template <class T>
__device__ inline void resize_images(const ResizeArguments& a) {
  using A = resize_sum_t<T>;
  for (int64_t i = first(); i < a.n; i += step()) {
    const int64_t c = i % a.channels, x = i / a.channels % a.columns.to;
    const int64_t y = i / a.channels / a.columns.to % a.rows.to, image = i / a.channels / a.columns.to / a.rows.to;
    const T* const in = static_cast<const T*>(a.in) + image * a.rows.from * a.columns.from * a.channels + c;
    const int64_t *const rows = a.rows.index + y * a.rows.count, *const columns = a.columns.index + x * a.columns.count;
    const double *const down = a.rows.weight + y * a.rows.count, *const across = a.columns.weight + x * a.columns.count;
    const auto at = [&](int64_t row, int64_t column) { return in[(row * a.columns.from + column) * a.channels]; };
    T* const out = static_cast<T*>(a.out) + i;
    if (a.rows.count == 1 && a.columns.count == 1) {
      *out = at(rows[0], columns[0]);
      continue;
    }
    A sum = 0;
    for (int64_t k = 0; k < a.columns.count; ++k) {
      A line = static_cast<A>(down[0]) * convert<A>(at(rows[0], columns[k]));
      if (a.rows.count > 1) {  // the CPU's compiler merges the first product with the sum
        const A second = static_cast<A>(down[1]) * convert<A>(at(rows[1], columns[k]));
        line = std::fma(static_cast<A>(down[0]), convert<A>(at(rows[0], columns[k])), second);
      }
      for (int64_t j = 2; j < a.rows.count; ++j) {
        const A factor = static_cast<A>(down[j]);
        if (factor != 0) line = std::fma(factor, convert<A>(at(rows[j], columns[k])), line);
      }
      sum = std::fma(static_cast<A>(across[k]), line, sum);
    }
    *out = from_resize_sum<T>(sum);
  }
}

// The adjoint: a thread for each old element looks for the new ones that it is part of.
template <class T>
__device__ inline void unresize_images(const ResizeArguments& a) {
  using A = resize_sum_t<T>;
#pragma unroll 1  // unrolled, the loops spill around the divisions of 64-bit integers
  for (int64_t i = first(); i < a.n; i += step()) {
    const int64_t c = i % a.channels, column = i / a.channels % a.columns.from;
    const int64_t row = i / a.channels / a.columns.from % a.rows.from;
    const int64_t image = i / a.channels / a.columns.from / a.rows.from;
    const T* const grad = static_cast<const T*>(a.in) + image * a.rows.to * a.columns.to * a.channels + c;
    A sum = 0;
#pragma unroll 1
    for (int64_t y = 0; y < a.rows.to * a.rows.count; ++y) {
      if (a.rows.index[y] != row) continue;
#pragma unroll 1
      for (int64_t x = 0; x < a.columns.to * a.columns.count; ++x) {
        if (a.columns.index[x] != column) continue;
        const A weight = static_cast<A>(a.rows.weight[y]) * static_cast<A>(a.columns.weight[x]);
        const int64_t at = y / a.rows.count * a.columns.to + x / a.columns.count;
        sum += weight * convert<A>(grad[at * a.channels]);
      }
    }
    static_cast<T*>(a.out)[i] = convert<T>(sum);
  }
}

}  // namespace hybridnet::device
