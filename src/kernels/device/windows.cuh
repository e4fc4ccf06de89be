// Columns of image windows and back, padding by mirrored or repeated elements, and windows of channels.
#pragma once

#include <cmath>

#include "kernels/device/accumulators.cuh"
#include "kernels/device/values_arguments.h"

namespace hybridnet::device {

// T: an unsigned integer of an element's size.
template <class T>
__device__ inline void im2col(const WindowArguments& a) {
  const int64_t taps = a.kernel[0] * a.kernel[1] * a.kernel[2], positions = a.steps[0] * a.steps[1] * a.steps[2];
  for (int64_t i = first(); i < a.planes * taps * positions; i += step()) {
    int64_t position = i % positions, tap = i / positions % taps, at[3];
    bool inside = true;
    for (int axis = 2; axis >= 0; --axis) {
      at[axis] = position % a.steps[axis] * a.stride[axis] + tap % a.kernel[axis] * a.dilate[axis] - a.pad[axis];
      position /= a.steps[axis];
      tap /= a.kernel[axis];
      inside = inside && at[axis] >= 0 && at[axis] < a.image[axis];
    }
    const int64_t plane = i / positions / taps;
    const int64_t pixel = ((plane * a.image[0] + at[0]) * a.image[1] + at[1]) * a.image[2] + at[2];
    static_cast<T*>(a.out)[i] = inside ? static_cast<const T*>(a.in)[pixel] : T(0);
  }
}

// A thread for each pixel adds the values of its windows in the order of taps, which is the order of the CPU.
template <class T>
__device__ inline void col2im(const WindowArguments& a) {
  using A = wrapping_t<accumulator_t<T>>;
  const int64_t taps = a.kernel[0] * a.kernel[1] * a.kernel[2], positions = a.steps[0] * a.steps[1] * a.steps[2];
  for (int64_t i = first(); i < a.planes * a.image[0] * a.image[1] * a.image[2]; i += step()) {
    int64_t at[3], rest = i;
    for (int axis = 2; axis >= 0; --axis) {
      at[axis] = rest % a.image[axis];
      rest /= a.image[axis];
    }
    A sum = 0;
    for (int64_t tap = 0; tap < taps; ++tap) {
      const int64_t point[3] = {tap / (a.kernel[1] * a.kernel[2]), tap / a.kernel[2] % a.kernel[1], tap % a.kernel[2]};
      int64_t position = 0;
      bool inside = true;
      for (int axis = 0; axis < 3; ++axis) {
        const int64_t from = at[axis] + a.pad[axis] - point[axis] * a.dilate[axis], s = from / a.stride[axis];
        inside = inside && from >= 0 && from == s * a.stride[axis] && s < a.steps[axis];
        position = position * a.steps[axis] + s;
      }
      if (inside)
        sum += static_cast<A>(
            convert<accumulator_t<T>>(static_cast<const T*>(a.in)[(rest * taps + tap) * positions + position]));
    }
    static_cast<T*>(a.out)[i] = convert<T>(static_cast<accumulator_t<T>>(sum));
  }
}

// T: an unsigned integer of an element's size.
template <class T>
__device__ inline void pad(const PadArguments& a) {
  for (int64_t i = first(); i < a.n; i += step()) {
    int64_t rest = i, from = 0, stride = 1;
    for (int64_t axis = a.ndim - 1; axis >= 0; --axis) {
      int64_t at = rest % a.out_size[axis] - a.before[axis];
      rest /= a.out_size[axis];
      const int64_t size = a.in_size[axis];
      if (at < 0)
        at = a.reflects ? -at : 0;
      else if (at >= size)
        at = a.reflects ? 2 * (size - 1) - at : size - 1;
      from += at * stride;
      stride *= size;
    }
    static_cast<T*>(a.out)[i] = static_cast<const T*>(a.in)[from];
  }
}

// The positions of a padded axis that repeat element j of the data: the k-th of them, in order.
struct PadCopies {
  int64_t before, size, reflects, first, count;
  __device__ PadCopies(const PadArguments& a, int64_t axis, int64_t j)
      : before(a.before[axis]), size(a.in_size[axis]), reflects(a.reflects) {
    const int64_t end = a.out_size[axis];
    if (reflects) {
      first = j > 0 && j <= before ? before - j : before + j;
      count = (first != before + j ? 2 : 1) + (j < size - 1 && before + 2 * (size - 1) - j < end ? 1 : 0);
    } else {
      first = j == 0 ? 0 : before + j;
      count = (j == size - 1 ? end : before + j + 1) - first;
    }
    at = before + j;
  }
  __device__ int64_t operator[](int64_t k) const {
    if (!reflects) return first + k;
    if (k == 0) return first;
    return k == 1 && first != at ? at : before + 2 * (size - 1) - (at - before);
  }
  int64_t at;
};

// The sum of the copies of each element, in the order of the padded tensor.
template <class T>
__device__ inline void pad_gradient(const PadArguments& a) {
  using A = wrapping_t<accumulator_t<T>>;
  for (int64_t i = first(); i < a.n; i += step()) {
    int64_t index[16], copy[16] = {}, rest = i;
    for (int64_t axis = a.ndim - 1; axis >= 0; --axis) {
      index[axis] = rest % a.in_size[axis];
      rest /= a.in_size[axis];
    }
    A sum = 0;
    for (int64_t axis = 0; axis >= 0;) {
      int64_t from = 0;
      for (int64_t k = 0; k < a.ndim; ++k) from = from * a.out_size[k] + PadCopies(a, k, index[k])[copy[k]];
      sum += static_cast<A>(convert<accumulator_t<T>>(static_cast<const T*>(a.in)[from]));
      for (axis = a.ndim - 1; axis >= 0; --axis) {
        if (++copy[axis] < PadCopies(a, axis, index[axis]).count) break;
        copy[axis] = 0;
      }
    }
    static_cast<T*>(a.out)[i] = convert<T>(static_cast<accumulator_t<T>>(sum));
  }
}

// ---- LRN

template <class T>
__device__ inline T window_sum(const ChannelWindowArguments& a, int64_t i, bool squares) {
  const int64_t position = i % a.inner, channel = i / a.inner % a.channels, example = i / a.inner / a.channels;
  const T* const in = static_cast<const T*>(a.in) + example * a.channels * a.inner + position;
  const int64_t low = channel > a.half ? channel - a.half : 0;
  const int64_t high = channel + a.half + 1 < a.channels ? channel + a.half + 1 : a.channels;
  T sum = 0;
  for (int64_t c = low; c < high; ++c) {
    const T x = in[c * a.inner];
    sum += squares ? x * x : x;
  }
  return sum;
}

template <class T>
__device__ inline void lrn_window_sum(const ChannelWindowArguments& a) {
  for (int64_t i = first(); i < a.batch * a.channels * a.inner; i += step())
    static_cast<T*>(a.out)[i] = window_sum<T>(a, i, false);
}

template <class T>
__device__ inline void lrn(const ChannelWindowArguments& a) {
  const T scale = static_cast<T>(a.scale), knorm = static_cast<T>(a.knorm), beta = static_cast<T>(a.beta);
  for (int64_t i = first(); i < a.batch * a.channels * a.inner; i += step()) {
    const T norm = window_sum<T>(a, i, true) * scale + knorm, x = static_cast<const T*>(a.in)[i];
    static_cast<T*>(a.norms)[i] = norm;
    if (beta == T(0.75)) {
      const T root = std::sqrt(norm);
      static_cast<T*>(a.out)[i] = x / (root * std::sqrt(root));
    } else {
      static_cast<T*>(a.out)[i] = x * std::pow(norm, -beta);
    }
  }
}

}  // namespace hybridnet::device
