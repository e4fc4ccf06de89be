// Rows chosen by a condition (where), and the cross entropy of rows (softmax_cross_entropy).
#pragma once

#include "kernels/device/elements.cuh"
#include "kernels/device/rows_arguments.h"
#include "kernels/elementwise/vector_math.h"

namespace hybridnet::device {

// T: an unsigned integer of an element's size.
template <class Condition, class T>
__device__ void choose_rows(const RowChoiceArguments& a) {
  for (int64_t i = first(); i < a.n; i += step()) {
    const bool chosen = convert<bool>(static_cast<const Condition*>(a.condition)[i / a.row]);
    static_cast<T*>(a.out)[i] = static_cast<const T*>(chosen ? a.x : a.y)[i];
  }
}

// A block of 256 threads for each row; room: a double for each thread.
template <class T, class Room>
__device__ void cross_entropy(const CrossEntropyArguments& a, Room& room) {
  const int thread = static_cast<int>(threadIdx.x);
  const hwy::N_ONE_LANE::ScalableTag<double> tag;
  for (int64_t r = blockIdx.x; r < a.rows; r += gridDim.x) {
    const T* row = static_cast<const T*>(a.x) + r * a.classes;
    double largest = -std::numeric_limits<double>::infinity();
    for (int64_t k = thread; k < a.classes; k += 256) {
      const double x = static_cast<double>(row[k]);
      largest = largest < x ? x : largest;
    }
    room[thread] = largest;
    for (int width = 128; width > 0; width /= 2) {
      __syncthreads();
      if (thread < width) {
        const double one = room[thread], other = room[thread + width];
        room[thread] = one < other ? other : one;
      }
    }
    __syncthreads();
    largest = room[0];
    __syncthreads();
    double total = 0;
    for (int64_t k = thread; k < a.classes; k += 256)
      total += kernels::N_ONE_LANE::exp(tag, static_cast<double>(row[k]) - largest);
    room[thread] = total;
    for (int width = 128; width > 0; width /= 2) {
      __syncthreads();
      if (thread < width) room[thread] = room[thread] + room[thread + width];
    }
    if (thread == 0) {
      const double sum = room[0];
      const T label = static_cast<const T*>(a.labels)[r];
      // Labels are truncated toward zero; NaN is no class.
      const bool is_class = label > T(-1) && label < static_cast<T>(a.classes);
      double loss = a.most;
      if (is_class)
        loss = largest + kernels::N_ONE_LANE::log(tag, sum) - static_cast<double>(row[static_cast<int64_t>(label)]);
      a.losses[r] = loss > a.most ? a.most : loss;  // NaN is kept
    }
    __syncthreads();
  }
}

}  // namespace hybridnet::device
