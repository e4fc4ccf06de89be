// Pooling over 1 to 3 spatial axes: each output position reduces a window of the input. Works on (n, c, space) and on
// (n, space, c) memory; the same bits for any number of cores. Instantiated for float and double.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace hybridnet::kernels {

enum class PoolType : int32_t { kMax, kAvg, kSum, kLp };

struct PoolGeometry {
  PoolType type = PoolType::kMax;
  int power = 2;          // kLp: 1, 2 or 3
  bool count_pad = true;  // kAvg: padding counts as elements
  bool channels_last = false;
  int64_t n = 0, c = 0;
  std::array<int64_t, 3> in{1, 1, 1}, out{1, 1, 1}, kernel{1, 1, 1}, stride{1, 1, 1}, pad{0, 0, 0};

  int64_t in_size() const { return in[0] * in[1] * in[2]; }
  int64_t out_size() const { return out[0] * out[1] * out[2]; }
  int64_t kernel_size() const { return kernel[0] * kernel[1] * kernel[2]; }

  // Input elements [first, last) along `axis` in the window of output `o`.
  int64_t first(int axis, int64_t o) const { return std::max<int64_t>(o * stride[axis] - pad[axis], 0); }
  int64_t last(int axis, int64_t o) const { return std::min(o * stride[axis] - pad[axis] + kernel[axis], in[axis]); }
  // The number of elements along `axis` that an average divides by.
  int64_t counted(int axis, int64_t o) const {
    if (!count_pad) return std::max<int64_t>(last(axis, o) - first(axis, o), 0);
    const int64_t begin = o * stride[axis] - pad[axis];
    return std::min(begin + kernel[axis], in[axis] + pad[axis]) - begin;
  }
  // Outputs [first, last) along `axis` whose window contains input `i`.
  int64_t first_output(int axis, int64_t i) const {
    const int64_t beyond = i + pad[axis] - kernel[axis];
    return beyond < 0 ? 0 : beyond / stride[axis] + 1;
  }
  int64_t last_output(int axis, int64_t i) const { return std::min((i + pad[axis]) / stride[axis] + 1, out[axis]); }
};

// kMax: if the window contains NaN, the result is NaN.
template <typename T>
void pool_forward(const PoolGeometry& g, const T* x, T* y);
// kMax: each output's gradient goes to the first element of its window that equals the output; NaN counts as equal to
// NaN.
template <typename T>
void max_pool_backward(const PoolGeometry& g, const T* dy, const T* x, const T* y, T* dx);
// The adjoint of max_pool_backward: out takes, for each window, the value of `v` at the position of the maximum in x.
template <typename T>
void max_pool_gather(const PoolGeometry& g, const T* v, const T* x, const T* y, T* out);
// kSum, kAvg: each output's gradient, divided like the average, is added to all elements of its window.
template <typename T>
void sum_pool_backward(const PoolGeometry& g, const T* dy, T* dx);

}  // namespace hybridnet::kernels
