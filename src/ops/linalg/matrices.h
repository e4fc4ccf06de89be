// Stacks of matrices: the trailing two axes are rows and columns.
#pragma once

#include <string>

#include "hybridnet/op.h"
#include "hybridnet/threads.h"
#include "kernels/memory/strided_copy.h"
#include "ops/cost.h"

namespace hybridnet::ops {

// Factorizations are computed in these dtypes; others are not accurate enough.
inline constexpr DTypeSet kFactorDTypes = DTypeSet(DType::kFloat32) | DType::kFloat64;

struct Matrices {
  int64_t count, rows, columns;
  explicit Matrices(const Shape& s) : count(s.size(0, s.ndim() - 2)), rows(s[s.ndim() - 2]), columns(s[s.ndim() - 1]) {}
  int64_t step() const { return rows * columns; }
};

inline void require_matrices(const InferContext& c, int i, bool square) {
  const Shape& s = c.in_shape(i);
  if (!s.rank_known()) return;
  const int n = s.ndim();
  if (n < 2)
    throw ShapeError({.input = c.input_name(i),
                      .expected = "at least 2 dimensions: (..., rows, columns)",
                      .given = "shape " + s.str()});
  if (square && s[n - 1] != kUnknownDim && s[n - 2] != kUnknownDim && s[n - 1] != s[n - 2])
    throw ShapeError({.input = c.input_name(i), .expected = "square matrices", .given = "shape " + s.str()});
}

// Infers an output with the shape and dtype of the input, a stack of square matrices.
inline void infer_square(InferContext& c) {
  c.unify_dtypes();
  c.unify_shapes();
  require_matrices(c, 0, true);
}

// The shape without its last `drop` axes; (1,) if none is left.
inline Shape stack_shape(const Shape& s, int drop) {
  Shape out = Shape::scalar();
  for (int i = 0; i + drop < s.ndim(); ++i) out.push_back(s[i]);
  if (out.ndim() == 0) out.push_back(1);
  return out;
}

// Calls f(i) for every matrix: up to two matrices run one after the other, each on all cores; more run in parallel.
template <typename F>
void for_each_matrix(int64_t count, int64_t work, F&& f) {
  const auto range = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) f(i);
  };
  if (count <= 2) return range(0, count);
  parallel_for(count, static_cast<double>(work), range);
}

// Calls f(T{}) for float32 and float64.
template <typename F>
void dispatch_factor(DType dtype, F&& f) {
  dtype == DType::kFloat64 ? f(double{}) : f(float{});
}

inline void copy_tensor(const TensorRef& from, const TensorRef& to) {
  kernels::copy_bytes(from.data, to.data, from.size() * dtype_size(from.dtype));
}

// The cost of n^3 operations per matrix.
inline double cubic_cost(const Shape& s) {
  const Matrices m(s);
  const auto rows = static_cast<double>(m.rows);
  return 500 + elements(s) * rows / 2 + static_cast<double>(m.count) * rows * 5;
}

}  // namespace hybridnet::ops
