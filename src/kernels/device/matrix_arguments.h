// The parameters of the kernels of matrices.cuh, for the host and for the device.
#pragma once

#include <cstdint>

namespace hybridnet::device {

// Square matrices (count, n, n), and vectors (count, length) of the elements of one diagonal or triangle of each.
struct PartArguments {
  const void* in;
  void* out;
  int64_t count, n, length, offset;
  int32_t band, lower;
};

struct TriangleArguments {
  const void* in;
  void* out;
  int64_t n, rows, columns;
  int32_t lower;
  double diagonal, factor;
};

// Vectors of `n` entries for each of `count` triangles (n, n).
struct SolveArguments {
  const void *triangles, *in;
  void* out;
  int64_t count, n, vectors, step, vector_step, entry_step;
  int32_t lower, transpose;
  double alpha;
};

struct KhatriRaoArguments {
  const void* in;
  void* out;
  int64_t n, columns, size, divisor;
  int32_t first;
};

// A vector of `count` numbers in ascending order.
struct SearchArguments {
  const void *sorted, *values;
  int64_t* out;
  int64_t n, count;
  int32_t right;
};

struct MovingMeanArguments {
  const void* before;
  const double* mean;  // means of the columns of a batch
  void* after;
  int64_t n;
  double momentum;
};

struct CloseArguments {
  const void *a, *b;
  uint8_t* out;
  int64_t n;
  double rtol, atol;
  int32_t equal_nan;
};

}  // namespace hybridnet::device
