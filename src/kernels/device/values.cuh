// Values that depend on their position: ranges, diagonals, indices.
#pragma once

#include <cmath>

#include "kernels/device/elements.cuh"
#include "kernels/device/values_arguments.h"

namespace hybridnet::device {

template <class T>
__device__ inline void range(const RangeArguments& a) {
  for (int64_t i = first(); i < a.n; i += step()) {
    const double value = a.start + static_cast<double>(a.repeat == 1 ? i : i / a.repeat) * a.step;
    static_cast<T*>(a.out)[i] = convert<T>(a.has_last && i == a.n - 1 ? a.last : value);
  }
}

template <class T>
__device__ inline void eye(const EyeArguments& a) {
  for (int64_t i = first(); i < a.rows * a.columns; i += step())
    static_cast<T*>(a.out)[i] = convert<T>(i % a.columns - i / a.columns == a.k);
}

__device__ inline void index_array(const IndexArrayArguments& a) {
  for (int64_t i = first(); i < a.n; i += step())
    for (int64_t k = 0; k < a.axes; ++k) a.out[i * a.axes + k] = i / a.inner[k] % a.sizes[k];
}

// T: an unsigned integer of an element's size.
template <class T>
__device__ inline void fill_element(const FillElementArguments& a) {
  for (int64_t i = first(); i < a.rows; i += step())
    static_cast<T*>(a.out)[i * a.columns + a.places[i]] = static_cast<const T*>(a.values)[i];
}

template <class T>
__device__ inline void ravel(const RavelArguments& a) {
  for (int64_t i = first(); i < a.count; i += step()) {
    uint64_t flat = 0;  // wraps around for indices and sizes beyond those of a tensor
    for (int64_t axis = 0; axis < a.ndim; ++axis)
      flat = flat * static_cast<uint64_t>(a.sizes[axis]) + static_cast<uint64_t>(a.ids[axis * a.count + i]);
    static_cast<T*>(a.out[0])[i] = convert<T>(static_cast<int64_t>(flat));
  }
}

template <class T>
__device__ inline void unravel(const RavelArguments& a) {
  for (int64_t i = first(); i < a.count; i += step()) {
    int64_t rest = a.ids[i];
    for (int64_t axis = a.ndim - 1; axis > 0; --axis) {
      const int64_t size = a.sizes[axis] > 1 ? a.sizes[axis] : 1;
      static_cast<T*>(a.out[axis])[i] = convert<T>(rest % size);
      rest /= size;
    }
    if (a.ndim > 0) static_cast<T*>(a.out[0])[i] = convert<T>(rest);
  }
}

template <class T>
__device__ inline void curve(const CurveArguments& a) {
  for (int64_t i = first(); i < a.n; i += step()) {
    const double at = a.start + static_cast<double>(i) * a.step;
    double value = 1;
    if (a.is_power)
      value = std::pow(a.base, a.has_last && i == a.n - 1 && i > 0 ? a.stop : at);
    else if (a.n > 1)
      value = a.a0 - a.a1 * std::cos(at) + a.a2 * std::cos(2 * at);
    static_cast<T*>(a.out)[i] = convert<T>(value);
  }
}

template <class T>
__device__ inline void one_hot(const OneHotArguments& a) {
  const T on = convert<T>(a.on), off = convert<T>(a.off);
  for (int64_t i = first(); i < a.rows * a.depth; i += step())
    static_cast<T*>(a.out)[i] = a.ids[i / a.depth] == i % a.depth ? on : off;
}

}  // namespace hybridnet::device
