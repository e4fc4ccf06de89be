// Words for the texts of fused chains, which kernels/elementwise/device_fused.cc writes: each step computes a value of
// the element's dtype, so that results have the bits of the steps one by one.
#pragma once

#include "kernels/device/fused_arguments.h"
#include "kernels/device/map.cuh"

namespace hybridnet::device {

// The position in a repeated input for element i of the result.
template <int kDims>
__device__ inline int64_t position(const FusedAxes<kDims>& axes, int64_t i) {
  int64_t at = 0;
  for (int axis = kDims - 1; axis > 0; --axis) {
    const int64_t size = axes.dims[axis];
    const int64_t next = (i | size) >> 32 == 0 ? static_cast<uint32_t>(i) / static_cast<uint32_t>(size) : i / size;
    at += (i - next * size) * axes.strides[axis];
    i = next;
  }
  return at + i * axes.strides[0];
}

// F applied to elements of type T; it computes in type C and has parameters at `numbers`, if any.
template <class F, class T, class C, class... Rest>
__device__ inline T computed(const double* numbers, T x, Rest... rest) {
  return convert<T>(evaluate(make_functor<F>(numbers, 0), convert<C>(x), convert<C>(rest)...));
}

// The same for an element and a number of type C, whose bytes are *bytes.
template <class F, class T, class C, bool kNumberFirst>
__device__ inline T computed_with_number(const double* bytes, T x) {
  C number;
  memcpy(&number, bytes, sizeof(number));
  if constexpr (kNumberFirst)
    return convert<T>(evaluate(F(), number, convert<C>(x)));
  else
    return convert<T>(evaluate(F(), convert<C>(x), number));
}

}  // namespace hybridnet::device
