// Matrix algebra for gradient rules, on stacks of matrices.
#pragma once

#include "ops/emit.h"
#include "ops/linalg/triangle_params.h"

namespace hybridnet::ops {

// alpha * op(a) op(b)
Value matrix_product(const Value& a, const Value& b, bool transpose_a, bool transpose_b, double alpha = 1.0);
Value matrix_transpose(const Value& a);
// Solves op(a) x = b, or x op(a) = b, for x.
Value triangular_solve(const Value& a, const Value& b, TriangleParams p);
Value keep_triangle(const Value& a, KeepTriangleParams p);
// A value per matrix, as (..., 1, 1), to broadcast over `matrix`.
Value per_matrix(const Value& a, const Value& matrix);

}  // namespace hybridnet::ops
