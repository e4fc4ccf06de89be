// Shapes of dense layers: rows of features -> rows of hidden units.
#pragma once

#include "hybridnet/inference.h"

namespace hybridnet::ops {

// The product of the sizes of the axes [first, last), or kUnknownDim.
inline int64_t known_product(const Shape& s, int first, int last) {
  int64_t product = 1;
  for (int i = first; i < last; ++i) {
    if (s[i] == kUnknownDim) return kUnknownDim;
    product *= s[i];
  }
  return product;
}

// Infers weight, output and data, given data of known rank whose first `rows` axes are the rows.
inline void infer_dense_rows(InferContext& c, int rows, int64_t hidden) {
  const Shape& data = c.in_shape(0);
  c.set_in_shape(1, Shape{hidden, known_product(data, rows, data.ndim())});
  Shape out = Shape::unknown(rows + 1);
  for (int i = 0; i < rows; ++i) out[i] = data[i];
  out[rows] = hidden;
  c.set_out_shape(0, out);
  Shape learned = Shape::unknown(data.ndim());
  for (int i = 0; i < rows; ++i) learned[i] = c.out_shape(0)[i];
  if (rows == data.ndim() - 1) learned[rows] = c.in_shape(1)[1];
  c.set_in_shape(0, learned);
}

}  // namespace hybridnet::ops
