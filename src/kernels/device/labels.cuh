// The gradient of SoftmaxOutput: scale * (y - label) with labels as class numbers or as probabilities.
#pragma once

#include "kernels/device/elements.cuh"
#include "kernels/device/values_arguments.h"

namespace hybridnet::device {

// The label as an integer, truncated toward zero; -1 if it is no class number (NaN, huge).
template <class T>
__device__ inline int64_t class_of(T label) {
  return label > T(-1e9) && label < T(1e9) ? static_cast<int64_t>(label) : -1;
}

// Adds up in integers, in any order: one block.
template <class T>
__device__ inline void count_labels(const CountArguments& a, HN_SHARED_POINTER(int64_t) room) {
  int64_t count = 0;
  for (int64_t i = threadIdx.x; i < a.n; i += blockDim.x)
    count += class_of(static_cast<const T*>(a.labels)[i]) != a.ignore;
  room[threadIdx.x] = count;
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) {
      const int64_t left = room[threadIdx.x], right = room[threadIdx.x + half];
      room[threadIdx.x] = left + right;
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    const int64_t total = room[0];
    *a.count = total;
  }
}

// labels: probabilities, one for each element.
template <class T>
__device__ inline void subtract_labels(const LabelArguments& a) {
  const T *const y = static_cast<const T*>(a.y), *const labels = static_cast<const T*>(a.labels);
  const T* const weights = static_cast<const T*>(a.weights);
  const T scale = static_cast<T>(a.factor);
  for (int64_t i = first(); i < a.n; i += step()) {
    const T difference = a.linear ? y[i] : y[i] - labels[i];
    static_cast<T*>(a.out)[i] = scale * difference * (weights ? weights[i] : T(1));
  }
}

// labels: class numbers, one for each row.
template <class T>
__device__ inline void subtract_one_hot(const LabelArguments& a) {
  const T *const y = static_cast<const T*>(a.y), *const labels = static_cast<const T*>(a.labels);
  const T* const weights = static_cast<const T*>(a.weights);
  const T others = static_cast<T>(a.others), own = static_cast<T>(a.own);
  const double divisor = a.valid ? static_cast<double>(*a.valid > 1 ? *a.valid : 1) : 1.0;
  const T scale = static_cast<T>(a.factor / divisor);
  for (int64_t i = first(); i < a.n; i += step()) {
    const int64_t plane = i / a.inner / a.length, k = i / a.inner % a.length;
    const int64_t label = class_of(labels[plane * a.inner + i % a.inner]);
    T value = scale * (y[i] - (!a.linear && label == k ? own : others));
    if (a.use_ignore && label == a.ignore) value = T(0);
    static_cast<T*>(a.out)[i] = weights ? value * weights[i] : value;
  }
}

}  // namespace hybridnet::device
