// A product of matrices in memory of a device, as a library takes it: C = alpha * op(A) op(B) + beta * C over row-major
// memory; op transposes if the call says so. With beta == 0, C is not read.
#pragma once

#include <cstdint>

#include "hybridnet/base.h"

namespace hybridnet::device {

struct ProductCall {
  DType dtype = DType::kFloat32;  // the type of A, B and C; floating. Halves are summed in float32.
  bool transpose_a = false, transpose_b = false;
  bool reduced_float32 = false;                           // factors in float32 may be rounded to 10 bits and more
  int64_t m = 0, n = 0, k = 0;                            // op(A) is (m, k), op(B) is (k, n), C is (m, n)
  int64_t lda = 0, ldb = 0, ldc = 0;                      // elements between rows in memory
  int64_t batch = 1, a_step = 0, b_step = 0, c_step = 0;  // elements between matrices; a step of 0 repeats A or B
  double alpha = 1, beta = 0;
  const void *a = nullptr, *b = nullptr;
  void* c = nullptr;
};

}  // namespace hybridnet::device
