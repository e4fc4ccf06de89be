// Elementwise kernels over functors (kernels/functors): one element for each thread at a time. The texts are written by
// kernels/elementwise/device_map.cc: one kernel for each functor, element type and form.
#pragma once

#include <hwy/highway.h>

#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "kernels/device/elements.cuh"
#include "kernels/device/kernel.cuh"
#include "kernels/device/map_arguments.h"

namespace hybridnet::device {

// Functors with parameters are constructed from the scalars.
template <class F>
__device__ inline auto make_functor(const double* scalars, int) -> decltype(F(scalars)) {
  return F(scalars);
}
template <class F>
__device__ inline F make_functor(const double*, long) {
  return F();
}

template <class F, class = void>
inline constexpr bool is_vector_functor = false;
template <class F>
inline constexpr bool is_vector_functor<F, std::void_t<decltype(F::kVector)>> = F::kVector;

template <class F, class C, class... Rest>
__device__ inline C evaluate(const F& f, C x, Rest... rest) {
  if constexpr (is_vector_functor<F>) {
    return f(hwy::HWY_NAMESPACE::ScalableTag<C>(), x, rest...);
  } else {
    return static_cast<C>(f(x, rest...));
  }
}

template <class T, class C>
__device__ inline C load(const void* in, int64_t i) {
  return convert<C>(static_cast<const T*>(in)[i]);
}

// T: the type of elements; C: the type in which F computes; Out: T, or bool for the predicate F(...) != 0.
template <class F, class T, class C, class Out, int kArity>
struct Map {
  static __device__ void map(const MapArguments& a) { map(a, std::make_index_sequence<kArity>()); }
  static __device__ void broadcast(const BroadcastArguments& a) { broadcast(a, std::make_index_sequence<kArity>()); }
  static __device__ void number(const NumberArguments& a) {
    const auto f = make_functor<F>(nullptr, 0);
    C number;
    memcpy(&number, &a.number, sizeof(number));
    for (int64_t i = first(); i < a.n; i += step()) {
      const C x = load<T, C>(a.in, i);
      store(a.out, i, evaluate(f, a.number_first ? number : x, a.number_first ? x : number));
    }
  }

 private:
  template <size_t... K>
  static __device__ void map(const MapArguments& a, std::index_sequence<K...>) {
    const auto f = make_functor<F>(a.scalars, 0);
    for (int64_t i = first(); i < a.n; i += step()) {
      store(a.out, i, evaluate(f, load<T, C>(a.in[K], i * a.step[K])...));
    }
  }

  template <size_t... K>
  static __device__ void broadcast(const BroadcastArguments& a, std::index_sequence<K...>) {
    const auto f = make_functor<F>(a.scalars, 0);
    for (int64_t i = first(); i < a.n; i += step()) {
      int64_t at[kArity] = {};
      find(a, i, at);
      store(a.out, i, evaluate(f, load<T, C>(a.in[K], at[K])...));
    }
  }

  // The positions of the inputs for output i.
  static __device__ void find(const BroadcastArguments& a, int64_t i, int64_t (&at)[kArity]) {
    for (int axis = static_cast<int>(a.ndim) - 1; axis > 0; --axis) {
      const int64_t next = quotient(i, a.dims[axis]), index = i - next * a.dims[axis];
      for (int k = 0; k < kArity; ++k) at[k] += index * a.strides[k][axis];
      i = next;
    }
    for (int k = 0; k < kArity; ++k) at[k] += i * a.strides[k][0];
  }
  // Division of 32 bits takes a third of the time.
  static __device__ int64_t quotient(int64_t a, int64_t b) {
    if ((a | b) >> 32 == 0) return static_cast<uint32_t>(a) / static_cast<uint32_t>(b);
    return a / b;
  }

  static __device__ void store(void* out, int64_t i, C y) {
    if constexpr (std::is_same_v<T, Out>) {
      static_cast<T*>(out)[i] = convert<T>(y);
    } else {
      static_cast<Out*>(out)[i] = convert<Out>(convert<T>(y));
    }
  }
};

// Adds in the order of the inputs, in type C; Add: the functor.
template <class Add, class T, class C, class Arguments>
__device__ inline void sum(const Arguments& a) {
  for (int64_t i = first(); i < a.n; i += step()) {
    C y = load<T, C>(a.in[0], i);
    for (int64_t k = 1; k < a.inputs; ++k) y = evaluate(Add(), y, load<T, C>(a.in[k], i));
    static_cast<T*>(a.out)[i] = convert<T>(y);
  }
}

// Condition: the type of the condition's elements; T: an integer of the items' size.
template <class Condition, class T>
__device__ inline void select(const SelectArguments& a) {
  for (int64_t i = first(); i < a.n; i += step()) {
    const bool condition = convert<bool>(static_cast<const Condition*>(a.condition)[i]);
    static_cast<T*>(a.out)[i] = (condition ? static_cast<const T*>(a.yes) : static_cast<const T*>(a.no))[i];
  }
}

}  // namespace hybridnet::device
