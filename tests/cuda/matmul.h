// The arithmetic of cublas_lt.cc: products of matrices by columns, summed in float64.
// Threads: any.
#pragma once

#include <cstdint>

#include "elements.h"

namespace standin {

// A batch of matrices; element (i, j) of matrix b is at b * step + j * leading + i.
struct Matrix {
  uint64_t address = 0;
  int64_t rows = 0, columns = 0, leading = 0;
  int64_t count = 1, step = 0;
  int64_t elements() const { return (count - 1) * step + (columns - 1) * leading + rows; }  // with gaps
};

struct Matmul {
  Matrix a, b, c, d;
  bool transpose_a = false, transpose_b = false;
  bool tf32 = false;  // factors are rounded to 10 bits after the leading one
  Element element = Element::kFloat32;
  double alpha = 1, beta = 0;
  double error = 0;  // relative, of sums: that of a random order
};

void multiply(const Matmul& product);

}  // namespace standin
