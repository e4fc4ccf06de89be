// Sums of squares of many tensors, in float64, and what optimizers compute from them. The sum of a block of 4096
// elements is a tree; the sums of blocks are added in order.
#pragma once

#include "kernels/device/update.cuh"
#include "kernels/functors/update_adam.h"

namespace hybridnet::device {

template <class T>
using compute_t = std::conditional_t<is_half<T>, float, T>;

template <class T>
__device__ inline void squares(const SquaresArguments& a, HN_SHARED_POINTER(double) room) {
  for_each_part(a, kSquaresBlock, [&](int i, int64_t begin, int64_t end) {
    double sum = 0;
    for (int64_t k = begin + threadIdx.x; k < end; k += blockDim.x) {
      const double value = convert<double>(static_cast<const T*>(a.tensors[i].data)[k]);
      sum += value * value;
    }
    room[threadIdx.x] = sum;
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
      __syncthreads();
      if (threadIdx.x < half) {
        const double left = room[threadIdx.x], right = room[threadIdx.x + half];
        room[threadIdx.x] = left + right;
      }
    }
    if (threadIdx.x == 0) {
      const double total = room[0];
      a.partial[a.first_block[i] + begin / kSquaresBlock] = total;
    }
    __syncthreads();
  });
}

// Writes 0 if an element is infinite or NaN; all threads that do write the same.
template <class T>
__device__ inline void finite(const FiniteArguments& a) {
  for_each_part(a, kSquaresBlock, [&](int i, int64_t begin, int64_t end) {
    bool found = false;
    for (int64_t k = begin + threadIdx.x; k < end; k += blockDim.x)
      found = found || !std::isfinite(convert<compute_t<T>>(static_cast<const T*>(a.tensors[i].data)[k]));
    if (found) *a.out = 0.0f;
  });
}

__device__ inline double sum_of(const double* partial, int64_t count) {
  double total = 0;
  for (int64_t k = 0; k < count; ++k) total += partial[k];
  return total;
}

template <class Out>
__device__ inline void join_squares(const JoinSquaresArguments& a) {
  for (int64_t i = first(); i < a.count; i += step())
    static_cast<Out*>(a.out)[i] =
        static_cast<Out>(sum_of(a.partial + a.first_block[i], a.first_block[i + 1] - a.first_block[i]));
}

__device__ inline void lars(const LarsArguments& a) {
  for (int64_t i = first(); i < a.n; i += step()) {
    const double weight = std::sqrt(static_cast<double>(a.weights[i]));
    const double grad = std::sqrt(static_cast<double>(a.grads[i]));
    const bool scaled = weight > 0 && grad > 0;
    a.out[i] = scaled
                   ? static_cast<float>(a.lrs[i] * a.eta * weight / (grad * a.rescale_grad + a.wds[i] * weight + a.eps))
                   : a.lrs[i];
  }
}

// One thread.
__device__ inline void layer_rates(const LayerRatesArguments& a) {
  if (first() != 0) return;
  const double weight = sum_of(a.partial, a.weight_blocks), grad = sum_of(a.partial + a.weight_blocks, a.grad_blocks);
  const double wd = a.rates[1], rescale = a.rates[2], lr = a.rates[0];
  double factor = 1;
  if (!a.is_lars) {
    factor = std::sqrt(weight / (grad + wd * weight + 1e-18));
    factor = factor < 0.01 ? 0.01 : factor > 100.0 ? 100.0 : factor;
  } else {
    const double of_weight = std::sqrt(weight), of_grad = std::sqrt(grad) * rescale;
    if (of_weight > 0.0 && of_grad > 0.0) factor = a.eta * of_weight / (of_grad + wd * of_weight + a.eps);
  }
  for (int64_t k = 1; k < a.columns; ++k) a.out[k] = a.rates[k];
  a.out[0] = lr * factor;
}

// W: the weight that is updated, a master or T; Out: the weight.
template <class W, class Out, class A>
__device__ inline void lamb(const LambArguments& a) {
  const A rate = static_cast<A>(
      kernels::trusted_rate(a.lr, std::sqrt(a.totals[0]), std::sqrt(a.totals[1]), a.lower_bound, a.upper_bound));
  for (int64_t i = first(); i < a.n; i += step()) {
    const A w = convert<A>(static_cast<const W*>(a.weight)[i]) - rate * static_cast<const A*>(a.step)[i];
    if (a.master_out) a.master_out[i] = static_cast<float>(w);
    static_cast<Out*>(a.out)[i] = convert<Out>(w);
  }
}

// A thread for each row, whose squares are added in order, as on the CPU.
template <class T, class A>
__device__ inline void rows_adagrad(const RowsAdagradArguments& a) {
  const A lr = static_cast<A>(a.lr), rescale = static_cast<A>(a.rescale_grad), epsilon = static_cast<A>(a.epsilon);
  const A bound = kernels::clip_bound<A>(a.clip_gradient);
  for (int64_t row = first(); row < a.count; row += step()) {
    const T* const grad = static_cast<const T*>(a.grad) + row * a.width;
    A squares = 0;
    for (int64_t i = 0; i < a.width; ++i) {
      const A clipped = kernels::clip_to(convert<A>(grad[i]) * rescale, bound);
      squares += clipped * clipped;
    }
    const A sum = convert<A>(static_cast<const T*>(a.before)[row]) + squares / static_cast<A>(a.width);
    static_cast<T*>(a.history)[row] = convert<T>(sum);
    const A rate = lr / std::sqrt(sum + epsilon);
    for (int64_t i = 0; i < a.width; ++i) {
      const A w = convert<A>(static_cast<const T*>(a.weight)[row * a.width + i]);
      static_cast<T*>(a.out)[row * a.width + i] =
          convert<T>(w - rate * kernels::clip_to(convert<A>(grad[i]) * rescale, bound));
    }
  }
}

}  // namespace hybridnet::device
