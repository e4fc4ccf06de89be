// The parameters of the kernels of product.cuh, for the host and for the device.
#pragma once

#include <cstdint>

namespace hybridnet::device {

// C = alpha * op(A) op(B) + beta * C for `batch` matrices; element (i, x) of op(A) is at i * a_row + x * a_column. With
// beta == 0, C is not read.
struct ProductArguments {
  const void *a, *b;
  void* c;
  int64_t m, n, k;
  int64_t a_row, a_column, b_row, b_column, c_row;
  int64_t batch, a_step, b_step, c_step;  // elements between matrices; a step of 0 repeats
  int64_t tiles_down, tiles_across;
  double alpha, beta;
};

}  // namespace hybridnet::device
