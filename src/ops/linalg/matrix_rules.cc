#include "ops/linalg/matrix_rules.h"

namespace hybridnet::ops {
namespace {

const OpRef kGemm2{"_linalg_gemm2"}, kSolve{"_linalg_trsm"}, kKeep{"_linalg_keep_triangle"};

}  // namespace

Value matrix_product(const Value& a, const Value& b, bool transpose_a, bool transpose_b, double alpha) {
  if (!a || !b) return {};
  return call(kGemm2, {a, b}, {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}, {"alpha", alpha}});
}

Value matrix_transpose(const Value& a) {
  const int n = spec_of(a).shape.ndim();
  Tuple axes = Shape::unknown(n);
  for (int i = 0; i < n; ++i) axes[i] = i;
  std::swap(axes[n - 2], axes[n - 1]);
  return transpose(a, axes);
}

Value triangular_solve(const Value& a, const Value& b, TriangleParams p) {
  return call(kSolve, {a, b}, ParamSchema<TriangleParams>::box(p));
}

Value keep_triangle(const Value& a, KeepTriangleParams p) {
  return call(kKeep, {a}, ParamSchema<KeepTriangleParams>::box(p));
}

Value per_matrix(const Value& a, const Value& matrix) {
  const Shape& s = spec_of(matrix).shape;
  Shape out = s;
  out[s.ndim() - 1] = out[s.ndim() - 2] = 1;
  return reshape(a, out);
}

}  // namespace hybridnet::ops
