// _linalg_gelqf and _linalg_syevd: LQ factorization and eigenvectors of symmetric matrices.
//   Gradients: Seeger et al., Auto-Differentiating Linear Algebra, arXiv 1710.08717.
#include "hybridnet/declare.h"
#include "kernels/linalg/factorizations.h"
#include "ops/linalg/matrices.h"
#include "ops/linalg/matrix_rules.h"

namespace hybridnet::ops {
namespace {

const OpRef kMakeDiag{"_linalg_makediag"};

void infer_gelqf(const NoParams&, InferContext& c) {
  c.unify_dtypes();
  c.set_out_shape(0, c.in_shape(0));
  c.set_in_shape(0, c.out_shape(0));
  require_matrices(c, 0, false);
  const Shape& a = c.in_shape(0);
  if (!a.rank_known()) return;
  const int n = a.ndim();
  if (a[n - 1] != kUnknownDim && a[n - 2] > a[n - 1])
    throw ShapeError(
        {.input = "A", .expected = "matrices with at most as many rows as columns", .given = "shape " + a.str()});
  Shape l = a;
  l[n - 1] = a[n - 2];
  c.set_out_shape(1, l);
}

void run_gelqf(const NoParams&, const KernelArgs& args) {
  const Matrices m(*args.in[0].shape);
  copy_tensor(args.in[0], args.out[0]);
  dispatch_factor(args.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    for_each_matrix(m.count, m.rows * m.step(), [&](int64_t i) {
      kernels::lq(m.rows, m.columns, args.out[0].as<T>() + i * m.step(), args.out[1].as<T>() + i * m.rows * m.rows);
    });
  });
}

// Mirrors the lower triangle above the diagonal.
Value mirrored(const Value& a) {
  const Value lower = keep_triangle(a, {true, 0.5, 1.0});
  return lower + matrix_transpose(lower);
}

// A = L Q: dA = L^-T (dQ + mirrored(L^T dL - dQ Q^T) Q)
Values gelqf_gradient(const NoParams&, const GradientContext& g) {
  const Value dq = g.output_grad(0), dl = g.output_grad(1), q = g.output(0), l = g.output(1);
  if (!dq && !dl) return {};
  const Value inner = matrix_product(l, dl, true, false) + matrix_product(dq, q, false, true, -1.0);
  return {triangular_solve(l, dq + matrix_product(mirrored(inner), q, false, false), {true, false, true, 1.0})};
}

void infer_syevd(const NoParams&, InferContext& c) {
  c.unify_dtypes();
  c.set_out_shape(0, c.in_shape(0));
  c.set_in_shape(0, c.out_shape(0));
  require_matrices(c, 0, true);
  if (c.in_shape(0).rank_known()) c.set_out_shape(1, stack_shape(c.in_shape(0), 1));
}

void run_syevd(const NoParams&, const KernelArgs& args) {
  const Matrices m(*args.in[0].shape);
  copy_tensor(args.in[0], args.out[0]);
  dispatch_factor(args.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    for_each_matrix(m.count, 10 * m.rows * m.step(), [&](int64_t i) {
      if (kernels::symmetric_eigen(m.rows, args.out[0].as<T>() + i * m.step(), args.out[1].as<T>() + i * m.rows))
        return;
      throw ValueError({.input = "A",
                        .expected = "symmetric matrices of finite numbers",
                        .given = "matrix " + std::to_string(i) + ", which has others"});
    });
  });
}

// A = U^T diag(l) U: dA = U^T (diag(dl) + symmetric part of F * (U dU^T)) U with F_ij = 1 / (l_j - l_i), 0 if they are
// equal.
Values syevd_gradient(const NoParams&, const GradientContext& g) {
  const Value du = g.output_grad(0), dl = g.output_grad(1), u = g.output(0), l = g.output(1);
  if (!du && !dl) return {};
  Value inner;
  if (du) {
    const int last = spec_of(l).shape.ndim();
    const Value gaps = expand_dims(l, last - 1) - expand_dims(l, last);
    const Value distinct = stop_gradient(greater(gaps * gaps, 0.0));
    const Value reciprocal = distinct / (gaps + (1.0 - distinct));
    const Value scaled = reciprocal * matrix_product(u, du, false, true);
    inner = (scaled + matrix_transpose(scaled)) * 0.5;
  }
  if (dl) inner = inner + call(kMakeDiag, {dl});
  return {matrix_product(matrix_product(u, inner, true, false), u, false, false)};
}

}  // namespace

void register_orthogonal(OpRegistry& ops) {
  ops.declare("_linalg_gelqf")
      .alias("linalg_gelqf")
      .doc(
          "LQ factorization: A = L Q with lower triangular L and orthonormal rows of Q. Gradients need matrices of "
          "full rank.")
      .input("A", "stack of matrices (..., rows, columns), rows <= columns")
      .output("Q", "(..., rows, columns)")
      .output("L", "(..., rows, rows)")
      .inplace(0, 0)
      .infer(infer_gelqf)
      .cpu(run_gelqf, kFactorDTypes)
      .cost([](const NoParams&, auto in, auto out) {
        (void)out;
        return 4 * cubic_cost(in[0].shape);
      })
      .gradient(gelqf_gradient, Saves::all_outputs())
      .amp(AmpType::kFloat)
      .output_names(OutputNames::kNumberedSeveral)
      .sample({{2, 3}})
      .sample({{2, 3, 3}});
  Sample s;
  s.inputs = {{3, 3}};
  s.check_gradient = false;
  s.note = "the gradient is that of symmetric matrices, random ones are not";
  Sample stacked = s;
  stacked.inputs = {{2, 4, 4}};
  ops.declare("_linalg_syevd")
      .alias("linalg_syevd")
      .doc(
          "Eigenvectors U, as rows, and eigenvalues L, rising, of symmetric matrices: U A = diag(L) U. Only the lower "
          "triangle is read. Gradients need eigenvalues that differ.")
      .input("A", "stack of symmetric matrices (..., n, n)")
      .output("U", "(..., n, n)")
      .output("L", "(..., n)")
      .inplace(0, 0)
      .infer(infer_syevd)
      .cpu(run_syevd, kFactorDTypes)
      .may_raise()
      .cost([](const NoParams&, auto in, auto out) {
        (void)out;
        return 20 * cubic_cost(in[0].shape);
      })
      .gradient(syevd_gradient, Saves::all_outputs())
      .amp(AmpType::kFloat)
      .output_names(OutputNames::kNumberedSeveral)
      .sample(s)
      .sample(stacked);
}

}  // namespace hybridnet::ops
