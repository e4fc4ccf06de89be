// Reductions over one axis of an (outer, reduced, inner) array. Elements are combined in the order of
// kernels/reduce/reduce_loops.cc with vectors of 32 bytes, so that the results have the CPU's bits.
#pragma once

#include <cmath>
#include <limits>

#include "kernels/device/accumulators.cuh"
#include "kernels/device/reduce_arguments.h"

namespace hybridnet::device {

// The least and the largest value of a type.
template <class T>
inline __device__ T least() {
  if constexpr (std::is_floating_point_v<T>) return -std::numeric_limits<T>::infinity();
  return std::numeric_limits<T>::lowest();
}
template <class T>
inline __device__ T largest() {
  if constexpr (std::is_floating_point_v<T>) return std::numeric_limits<T>::infinity();
  return std::numeric_limits<T>::max();
}

struct SumStep {
  static constexpr bool kSelects = false;
  template <class A>
  static __device__ A identity() {
    return A(0);
  }
  template <class A>
  static __device__ A map(A x) {
    return x;
  }
  template <class A>
  static __device__ A combine(A a, A b) {
    return static_cast<A>(static_cast<wrapping_t<A>>(a) + static_cast<wrapping_t<A>>(b));
  }
};
struct SumAbsStep : SumStep {
  template <class A>
  static __device__ A map(A x) {
    if constexpr (std::is_same_v<A, double>)
      return std::fabs(x);
    else
      return x < A(0) ? static_cast<A>(0 - static_cast<wrapping_t<A>>(x)) : x;
  }
};
struct SumSquaresStep : SumStep {
  template <class A>
  static __device__ A map(A x) {
    return static_cast<A>(static_cast<wrapping_t<A>>(x) * static_cast<wrapping_t<A>>(x));
  }
};
struct NansumStep : SumStep {
  template <class A>
  static __device__ A map(A x) {
    return x == x ? x : A(0);
  }
};
struct ProdStep {
  static constexpr bool kSelects = false;
  template <class A>
  static __device__ A identity() {
    return A(1);
  }
  template <class A>
  static __device__ A map(A x) {
    return x;
  }
  template <class A>
  static __device__ A combine(A a, A b) {
    return static_cast<A>(static_cast<wrapping_t<A>>(a) * static_cast<wrapping_t<A>>(b));
  }
};
struct NanprodStep : ProdStep {
  template <class A>
  static __device__ A map(A x) {
    return x == x ? x : A(1);
  }
};
// Results of these are elements: the accumulator needs no wider type. NaN propagates.
struct MaxStep {
  static constexpr bool kSelects = true;
  template <class A>
  static __device__ A identity() {
    return least<A>();
  }
  template <class A>
  static __device__ A map(A x) {
    return x;
  }
  template <class A>
  static __device__ A combine(A a, A b) {
    return b > a || b != b ? b : a;
  }
};
struct MinStep : MaxStep {
  template <class A>
  static __device__ A identity() {
    return largest<A>();
  }
  template <class A>
  static __device__ A combine(A a, A b) {
    return b < a || b != b ? b : a;
  }
};

template <class Step, class T>
using reduce_accumulator_t = std::conditional_t<
    is_half<T>, std::conditional_t<Step::kSelects, float, double>,
    std::conditional_t<Step::kSelects, T, std::conditional_t<std::is_floating_point_v<T>, double, int64_t>>>;

// Divides or takes the root of a finished accumulator, and converts it to the output's dtype.
template <class Out, class A>
inline __device__ Out finish(const ReduceArguments& a, A value) {
  constexpr int kDivide = 1, kSqrt = 2;
  if constexpr (std::is_same_v<A, double>) {
    if (a.finish == kDivide) value /= static_cast<double>(a.divisor);
    if (a.finish == kSqrt) value = std::sqrt(value);
  } else if constexpr (std::is_same_v<A, int64_t>) {
    if (a.finish == kDivide) value = a.divisor == 0 ? 0 : value / a.divisor;
    if (a.finish == kSqrt) value = convert<int64_t>(std::sqrt(static_cast<double>(value)));
  }
  return convert<Out>(value);
}

// Combines `count` values at(0), at(1) ... into acc, four at a time where the CPU does.
template <class Step, bool kQuads, class A, class At>
inline __device__ A combine_down(A acc, int64_t count, const At& at) {
  int64_t r = 0;
  if constexpr (kQuads) {
#pragma unroll 1  // four reads at a time are enough, and more would spill
    for (; r + 4 <= count; r += 4) {
      const A first = Step::combine(at(r), at(r + 1)), second = Step::combine(at(r + 2), at(r + 3));
      acc = Step::combine(acc, Step::combine(first, second));
    }
  }
  for (; r < count; ++r) acc = Step::combine(acc, at(r));
  return acc;
}

// Stores an output, or the accumulator of one of its parts.
template <class Out, class A>
inline __device__ void store_part(const ReduceArguments& a, A acc, int64_t output, int64_t slot) {
  if (a.parts > 1)
    static_cast<A*>(a.partial)[slot] = acc;
  else
    static_cast<Out*>(a.out)[output] = finish<Out>(a, acc);
}

// Contiguous rows: a group of threads for each part of a row, one thread for each lane of the CPU's four vectors.
template <class Step, class T, class Out, class Room>
__device__ void reduce_rows(const ReduceArguments& a, Room& room) {
  using A = reduce_accumulator_t<Step, T>;
  constexpr int kLanes = std::is_same_v<A, float> ? 8 : 4, kGroup = 4 * kLanes;
  const T* in = static_cast<const T*>(a.in);
  const int groups = static_cast<int>(blockDim.x) / kGroup;
  const int lane = static_cast<int>(threadIdx.x) % kGroup, mine = static_cast<int>(threadIdx.x) / kGroup;
  const int64_t n = a.outer * a.parts;
  for (int64_t base = static_cast<int64_t>(blockIdx.x) * groups; base < n;
       base += static_cast<int64_t>(gridDim.x) * groups) {
    const int64_t part = base + mine;
    const int64_t row = part / a.parts, begin = part % a.parts * a.part_rows;
    const int64_t length = part >= n ? 0 : a.reduced - begin < a.part_rows ? a.reduced - begin : a.part_rows;
    const T* from = in + row * a.reduced + begin;
    const auto value = [&](int64_t i) { return Step::map(convert<A>(from[i])); };
    A acc = Step::template identity<A>();
    int64_t i = 0;
#pragma unroll 2
    for (; i + kGroup <= length; i += kGroup) acc = Step::combine(acc, value(i + lane));
    for (; i + kLanes <= length; i += kLanes) {
      if (lane < kLanes) acc = Step::combine(acc, value(i + lane));
    }
    room[threadIdx.x] = acc;
    __syncthreads();
    if (lane == 0 && part < n) {
      const int at = static_cast<int>(threadIdx.x);
      A lanes[kLanes];
      for (int j = 0; j < kLanes; ++j)
        lanes[j] = Step::combine(
            Step::combine(static_cast<A>(room[at + j]), static_cast<A>(room[at + kLanes + j])),
            Step::combine(static_cast<A>(room[at + 2 * kLanes + j]), static_cast<A>(room[at + 3 * kLanes + j])));
      for (int width = kLanes / 2; width > 0; width /= 2)
        for (int j = 0; j < width; ++j) lanes[j] = Step::combine(lanes[j], lanes[j + width]);
      acc = lanes[0];
      for (; i < length; ++i) acc = Step::combine(acc, value(i));
      store_part<Out>(a, acc, row, part);
    }
    __syncthreads();
  }
}

// Combines the parts of rows: groups of `group` in order, and then the groups.
template <class Step, class A, class Out>
__device__ void join_rows(const ReduceArguments& a) {
  const A* partial = static_cast<const A*>(a.partial);
  for (int64_t o = first(); o < a.outer; o += step()) {
    const A* from = partial + o * a.parts;
    const auto group = [&](int64_t g) {
      A acc = from[g * a.group];
      for (int64_t i = g * a.group + 1; i < (g + 1) * a.group && i < a.parts; ++i) acc = Step::combine(acc, from[i]);
      return acc;
    };
    const int64_t groups = (a.parts + a.group - 1) / a.group;
    A acc = groups == 1 ? group(0) : Step::template identity<A>();
    if (groups > 1) acc = combine_down<Step, std::is_floating_point_v<A>>(acc, groups, group);
    static_cast<Out*>(a.out)[o] = finish<Out>(a, acc);
  }
}

// Columns: a thread for each output, or each of its parts. The CPU reads narrow matrices as wide ones, with several
// rows side by side. kMap: false if the input consists of accumulators.
template <class Step, class T, class Out, bool kMap>
__device__ void reduce_columns(const ReduceArguments& a) {
  using A = std::conditional_t<kMap, reduce_accumulator_t<Step, T>, T>;
  constexpr int64_t kNarrow = 32;
  constexpr bool kQuads = std::is_floating_point_v<T>;
  const T* in = static_cast<const T*>(a.in);
  const int64_t outputs = a.outer * a.inner, n = outputs * a.parts;
  const int64_t side = a.inner < kNarrow ? (2 * kNarrow) / a.inner : 1;
  for (int64_t item = first(); item < n; item += step()) {
    const int64_t part = item / outputs, output = item % outputs, k = output % a.inner;
    const int64_t begin = part * a.part_rows, end = begin + a.part_rows < a.reduced ? begin + a.part_rows : a.reduced;
    const T* from = in + (output / a.inner * a.reduced + begin) * a.inner + k;
    const auto sum = [&](A acc, const T* column, int64_t count, int64_t stride) {
      return combine_down<Step, kQuads>(acc, count, [&](int64_t r) {
        const A x = convert<A>(column[r * stride]);
        if constexpr (kMap) return Step::map(x);
        return x;
      });
    };
    A acc = Step::template identity<A>();
    int64_t count = end - begin;
    if (side > 1 && count >= 2 * side) {
      const int64_t tall = count / side;
      acc = combine_down<Step, std::is_floating_point_v<A>>(acc, side, [&](int64_t s) {
        return sum(Step::template identity<A>(), from + s * a.inner, tall, side * a.inner);
      });
      from += tall * side * a.inner;
      count -= tall * side;
    }
    acc = sum(acc, from, count, a.inner);
    store_part<Out>(a, acc, output, item);
  }
}

// Combines the parts (part, output) of columns.
template <class Step, class A, class Out>
__device__ void join_columns(const ReduceArguments& a) {
  const A* partial = static_cast<const A*>(a.partial);
  const int64_t outputs = a.outer * a.inner;
  for (int64_t i = first(); i < outputs; i += step()) {
    const A acc = combine_down<Step, std::is_floating_point_v<A>>(
        Step::template identity<A>(), a.parts, [&](int64_t part) { return partial[part * outputs + i]; });
    static_cast<Out*>(a.out)[i] = finish<Out>(a, acc);
  }
}

}  // namespace hybridnet::device
