// Quantized numbers: conversion to and from bytes, and functions of bytes.
#pragma once

#include <cmath>

#include "kernels/device/byte_arguments.h"
#include "kernels/device/elements.cuh"
#include "kernels/functors/byte_steps.h"

namespace hybridnet::device {

template <class T>
inline __device__ T at(const void* data, int64_t i) {
  return static_cast<const T*>(data)[i];
}

template <class From, class T>
__device__ inline void to_bytes(const ByteArguments& a) {
  for (int64_t i = first(); i < a.n; i += step())
    static_cast<T*>(a.out)[i] = kernels::nearest_step<T>(static_cast<float>(at<From>(a.x, i)) * a.scale + a.shift);
}

template <class From>
__device__ inline void to_floats(const ByteArguments& a) {
  for (int64_t i = first(); i < a.n; i += step())
    static_cast<float*>(a.out)[i] = static_cast<float>(at<From>(a.x, i)) * a.scale;
}

// Rows of x become parts of the rows of out.
template <class From, class T>
__device__ inline void rescale_rows(const ByteArguments& a) {
  for (int64_t i = first(); i < a.n; i += step())
    static_cast<T*>(a.out)[i / a.width * a.row + i % a.width] =
        kernels::nearest_step<T>(static_cast<float>(at<From>(a.x, i)) * a.scale);
}

template <class T>
__device__ inline void rectify_bytes(const ByteArguments& a) {
  for (int64_t i = first(); i < a.n; i += step()) {
    const T x = at<T>(a.x, i);
    static_cast<T*>(a.out)[i] = x > T(0) ? x : T(0);
  }
}

// Truncates toward zero; numbers outside of int32 saturate, NaN becomes 0.
inline __device__ int32_t to_int32(double value) {
  if (value > -2147483649.0 && value < 2147483648.0) return static_cast<int32_t>(value);
  return value < 0 ? std::numeric_limits<int32_t>::min() : value > 0 ? std::numeric_limits<int32_t>::max() : 0;
}

template <class X, class Y, class Z>
__device__ inline void add_bytes(const ByteArguments& a) {
  for (int64_t i = first(); i < a.n; i += step()) {
    const float sum = static_cast<float>(at<X>(a.x, i)) * a.scale + static_cast<float>(at<Y>(a.y, i)) * a.other;
    if constexpr (sizeof(Z) == 1)
      static_cast<Z*>(a.out)[i] = kernels::nearest_step<Z>(sum);
    else
      static_cast<Z*>(a.out)[i] = to_int32(static_cast<double>(std::rint(sum)));
  }
}

template <class Z>
__device__ inline void multiply_bytes(const ByteArguments& a) {
  for (int64_t i = first(); i < a.n; i += step()) {
    const int32_t product = static_cast<int32_t>(at<int8_t>(a.x, i)) * at<int8_t>(a.y, i);
    Z& out = static_cast<Z*>(a.out)[i];
    if constexpr (sizeof(Z) == 1) {
      const int32_t whole = to_int32(static_cast<double>(static_cast<float>(product) * a.scale));
      out = static_cast<Z>(whole < -128 ? -128 : whole > 127 ? 127 : whole);
    } else if constexpr (std::is_same_v<Z, float>) {
      out = static_cast<float>(product) * a.scale;
    } else {
      out = product;
    }
  }
}

// scale: what makes steps of int8 of those of x, for unsigned bytes.
template <class T>
__device__ inline void normalize_bytes(const ByteArguments& a) {
  for (int64_t i = first(); i < a.n; i += step()) {
    const int64_t c = i / a.inner % a.channels;
    float value = static_cast<float>(at<T>(a.x, i));
    if constexpr (!std::is_same_v<T, int8_t>)
      value = static_cast<float>(kernels::nearest_step<int8_t>(value * a.scale));
    static_cast<int8_t*>(a.out)[i] = kernels::nearest_step<int8_t>(value * a.scales[c] + a.shifts[c]);
  }
}

// Rows of `width` bytes, each times its scale. y: the numbers of the rows, int64; null: all in order.
inline __device__ void scale_rows(const ByteArguments& a) {
  for (int64_t i = first(); i < a.n; i += step()) {
    const int64_t row = a.y != nullptr ? at<int64_t>(a.y, i / a.width) : i / a.width;
    static_cast<float*>(a.out)[i] = static_cast<float>(at<int8_t>(a.x, row * a.width + i % a.width)) * a.scales[row];
  }
}

// y: a table of 256 bytes.
inline __device__ void look_up_bytes(const ByteArguments& a) {
  for (int64_t i = first(); i < a.n; i += step())
    static_cast<uint8_t*>(a.out)[i] = at<uint8_t>(a.y, at<uint8_t>(a.x, i));
}

// The comparisons keep the old value if the new one is NaN. room: 256 values.
template <class T>
__device__ inline void range_of_parts(const ByteRangeArguments& a, HN_SHARED_POINTER(float) room) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  float low = infinity, high = -infinity;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < a.n; i += a.blocks * blockDim.x) {
    const float v = static_cast<float>(at<T>(a.x, i));
    low = v < low ? v : low;
    high = v > high ? v : high;
  }
  for (int side = 0; side < 2; ++side) {
    __syncthreads();
    room[threadIdx.x] = side == 0 ? low : high;
    __syncthreads();
    if (threadIdx.x != 0) continue;
    float best = room[0];
    for (unsigned k = 1; k < blockDim.x; ++k) {
      const float other = room[k];
      best = (side == 0 ? other < best : other > best) ? other : best;
    }
    if (blockIdx.x < a.blocks) (side == 0 ? a.low : a.high)[blockIdx.x] = best;
  }
}

}  // namespace hybridnet::device
