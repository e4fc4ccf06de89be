// Softmax, its logarithm, and their gradients along one axis. Instantiated for float and double. Each row is computed
// by one thread, so the bits do not depend on the number of cores.
#pragma once

#include <cstdint>

#include "hybridnet/base.h"

namespace hybridnet::kernels {

// The memory layout (outer, length, inner); rows run along the middle axis.
struct RowShape {
  int64_t outer = 0, length = 0, inner = 1;
  int64_t rows() const { return outer * inner; }
  int64_t size() const { return outer * length * inner; }
  static RowShape along(const Shape& shape, int axis) {
    return {shape.size(0, axis), shape[axis], shape.size(axis + 1, shape.ndim())};
  }
};

// y = softmax(scale * x), or its logarithm; a negative scale gives softmin. With `lengths` (one per row, in order of
// outer, then inner; clipped to 0 .. length) only the first `length` elements of a row take part, the others become 0.
// y may alias x.
template <typename T>
void softmax(const RowShape& s, const T* x, double scale, bool log, const int64_t* lengths, T* y);

// dx = scale * y * (dy - sum(dy * y)), or for the logarithm scale * (dy - exp(y) * sum(dy)). dx may alias dy or y.
template <typename T>
void softmax_gradient(const RowShape& s, const T* dy, const T* y, double scale, bool log, T* dx);

// For contiguous rows (inner == 1), per row: total = log(sum(e^x)), picked = x[index] - total. `total` may be null.
template <typename T>
void log_softmax_pick(const RowShape& s, const T* x, const int64_t* index, T* picked, T* total);

// dx[j] = dy * ((j == index) - e^(x[j] - total)), dy one per row.
template <typename T>
void log_softmax_pick_gradient(const RowShape& s, const T* dy, const T* x, const int64_t* index, const T* total, T* dx);

}  // namespace hybridnet::kernels
