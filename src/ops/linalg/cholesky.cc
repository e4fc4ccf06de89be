// _linalg_potrf and _linalg_potri: Cholesky factors of symmetric positive definite matrices, and inverses from them.
//   Gradients: Seeger et al., Auto-Differentiating Linear Algebra, arXiv 1710.08717.
#include "hybridnet/declare.h"
#include "kernels/linalg/factorizations.h"
#include "kernels/product/gemm.h"
#include "ops/linalg/matrices.h"
#include "ops/linalg/matrix_rules.h"
#include "storage/temporary.h"

namespace hybridnet::ops {
namespace {

struct CholeskyParams {
  bool lower;
  static void describe(ParamSchema<CholeskyParams>& schema) {
    schema.field("lower", &CholeskyParams::lower)
        .default_value(true)
        .doc(
            "Lower triangular factors L with L L^T, or upper triangular ones U with U^T U. The other triangle is not "
            "read.");
  }
};

template <typename T>
void transpose_square(int64_t n, T* a) {
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < i; ++j) std::swap(a[i * n + j], a[j * n + i]);
}

void run_potrf(const CholeskyParams& p, const KernelArgs& args) {
  const Matrices m(*args.in[0].shape);
  copy_tensor(args.in[0], args.out[0]);
  dispatch_factor(args.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    for_each_matrix(m.count, m.rows * m.step(), [&](int64_t i) {
      T* matrix = args.out[0].as<T>() + i * m.step();
      if (!p.lower) transpose_square(m.rows, matrix);
      const int64_t bad = kernels::cholesky(m.rows, matrix);
      if (!p.lower) transpose_square(m.rows, matrix);
      if (bad < 0) return;
      throw ValueError(
          {.input = "A",
           .expected = "symmetric positive definite matrices",
           .given = "matrix " + std::to_string(i) + " whose leading " + std::to_string(bad + 1) + " rows are not",
           .fix = "add a small multiple of the identity, or check that the matrix is a covariance"});
    });
  });
}

// Upper triangular factors are transposed lower ones; the same holds for their gradients.
Value as_lower(const CholeskyParams& p, const Value& a) { return p.lower ? a : matrix_transpose(a); }

// A = L L^T: dA is the symmetric part of L^-T lower(L^T dL) L^-1, with the diagonal of lower() halved.
Values potrf_gradient(const CholeskyParams& p, const GradientContext& g) {
  if (!g.output_grad(0)) return {};
  const Value l = as_lower(p, g.output(0));
  const Value inner = keep_triangle(matrix_product(l, as_lower(p, g.output_grad(0)), true, false), {true, 0.5, 1.0});
  const Value left = triangular_solve(l, inner, {true, false, true, 1.0});
  const Value both = triangular_solve(l, left, {false, true, true, 1.0});
  return {(both + matrix_transpose(both)) * 0.5};
}

void run_potri(const CholeskyParams& p, const KernelArgs& args) {
  const Matrices m(*args.in[0].shape);
  const int64_t n = m.rows;
  dispatch_factor(args.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    for_each_matrix(m.count, n * m.step(), [&](int64_t i) {
      Temporary<T> inverse(static_cast<size_t>(n * n), T(0));
      for (int64_t k = 0; k < n; ++k) inverse[static_cast<size_t>(k * n + k)] = 1;
      // L^-1, or U^-T, which is equal. (LAPACK's potri turns NaN into 0 on some processors.)
      kernels::solve_triangular({.lower = p.lower, .transpose = !p.lower}, n, n, args.in[0].as<T>() + i * m.step(), n,
                                inverse.data(), n);
      kernels::gemm_in_tiles(kernels::GemmShape::dense(true, false, n, n, n), T(1), inverse.data(), inverse.data(),
                             T(0), args.out[0].as<T>() + i * m.step());
    });
  });
}

// B = (L L^T)^-1: dL = -lower(B (dB + dB^T) L^-T).
Values potri_gradient(const CholeskyParams& p, const GradientContext& g) {
  const Value out = g.output_grad(0);
  if (!out) return {};
  const Value product = matrix_product(g.output(0), out + matrix_transpose(out), false, false, -1.0);
  const Value solved = triangular_solve(as_lower(p, g.input(0)), product, {true, true, true, 1.0});
  return {as_lower(p, keep_triangle(solved, {true, 1.0, 1.0}))};
}

}  // namespace

void register_cholesky(OpRegistry& ops) {
  Sample positive;
  positive.inputs = {{3, 1, 1}};
  positive.low = 0.5;
  positive.note = "random matrices are positive definite only if they are numbers; larger ones have their own tests";
  Sample upper = positive;
  upper.attrs = {{"lower", "False"}};
  ops.declare<CholeskyParams>("_linalg_potrf")
      .alias("linalg_potrf")
      .doc(
          "Cholesky factors: the lower triangular L with A = L L^T. Only the lower triangle of A is read; its gradient "
          "is symmetric.")
      .input("A", "stack of symmetric positive definite matrices (..., n, n)")
      .output("output", "shape and dtype of A; zeros above the diagonal")
      .inplace(0, 0)
      .infer([](const CholeskyParams&, InferContext& c) { infer_square(c); })
      .cpu(run_potrf, kFactorDTypes)
      .may_raise()
      .cost(
          [](const CholeskyParams&, auto in, auto out) { return cubic_cost(out.empty() ? in[0].shape : out[0].shape); })
      .gradient(potrf_gradient, Saves::of({}, {0}))
      .amp(AmpType::kFloat)
      .sample(positive)
      .sample(upper);
  ops.declare<CholeskyParams>("_linalg_potri")
      .alias("linalg_potri")
      .doc("The inverse of L L^T for a lower triangular L, for example the output of _linalg_potrf.")
      .input("A", "stack of lower triangular matrices (..., n, n)")
      .output("output", "shape and dtype of A")
      .infer([](const CholeskyParams&, InferContext& c) { infer_square(c); })
      .cpu(run_potri, kFactorDTypes)
      .cost([](const CholeskyParams&, auto in, auto out) {
        return 3 * cubic_cost(out.empty() ? in[0].shape : out[0].shape);
      })
      .gradient(potri_gradient, Saves::of({0}, {0}))
      .amp(AmpType::kFloat)
      .sample({{3, 3}}, {}, 0.5, 1.5)
      .sample({{2, 2, 2}}, {}, 0.5, 1.5)
      .sample({{2, 2, 2}}, {{"lower", "False"}}, 0.5, 1.5);
}

}  // namespace hybridnet::ops
