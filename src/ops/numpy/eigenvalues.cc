// _npi_eigh, _npi_eigvalsh, _npi_eig, _npi_eigvals, and _npi_cholesky.
#include "hybridnet/declare.h"
#include "kernels/linalg/spectra.h"
#include "ops/linalg/matrices.h"
#include "ops/linalg/matrix_rules.h"
#include "ops/numpy/factor_dtypes.h"
#include "storage/temporary.h"

namespace hybridnet::ops {
namespace {

const OpRef kSymmetric{"_linalg_syevd"}, kGeneral{"_np_real_eigen"}, kCholesky{"_linalg_potrf"},
    kMakeDiag{"_linalg_makediag"}, kInverse{"_linalg_inverse"}, kExtractDiag{"_linalg_extractdiag"};

struct TriangleName {
  std::string uplo;
  static void describe(ParamSchema<TriangleName>& schema) {
    schema.field("UPLO", &TriangleName::uplo)
        .default_value("L")
        .one_of({"L", "U"})
        .doc("Whether the lower or the upper triangle is read.");
  }
};

Values symmetric(const TriangleName& p, const Value& a) {
  require_square(a, "A");
  const Value matrix = in_factor_dtype(a);
  return call_all(kSymmetric, {p.uplo == "U" ? matrix_transpose(matrix) : matrix});
}

// syevd returns eigenvectors as rows. Its outputs have at least one axis, so none of them is (1,) in place of a scalar.
Values eigh_rule(const TriangleName& p, const Values& in) {
  const Values found = symmetric(p, in[0]);
  const DType dtype = dtype_of(in[0]);
  return {in_result_dtype(found[1], dtype), in_result_dtype(matrix_transpose(found[0]), dtype)};
}

Values eigvalsh_rule(const TriangleName& p, const Values& in) {
  return {in_result_dtype(symmetric(p, in[0])[1], dtype_of(in[0]))};
}

// ------------------------------------------------------------------------------------------- general matrices
void infer_general(const NoParams&, InferContext& c) {
  c.unify_dtypes();
  require_matrices(c, 0, true);
  const Shape& a = c.in_shape(0);
  if (!a.known()) return;
  Shape values = Shape::scalar();
  for (int i = 0; i + 1 < a.ndim(); ++i) values.push_back(a[i]);
  c.set_out_shape(0, values);
  c.set_out_shape(1, a);
}

void run_general(const NoParams&, const KernelArgs& args) {
  const Matrices m(*args.in[0].shape);
  const int64_t n = m.rows;
  dispatch_factor(args.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    const double tolerance = sizeof(T) == 4 ? 1e-3 : 1e-7;
    for_each_matrix(m.count, 100 * n * m.step(), [&](int64_t i) {
      const T* from = args.in[0].as<T>() + i * m.step();
      const Temporary<double> a(from, from + m.step());
      Temporary<double> w(static_cast<size_t>(n)), v(static_cast<size_t>(m.step()));
      const auto result = kernels::real_eigen(n, a.data(), tolerance, w.data(), v.data());
      if (result != kernels::EigenResult::kReal)
        throw ValueError({.input = "A",
                          .expected = "matrices of finite numbers with real eigenvalues",
                          .given = "matrix " + std::to_string(i),
                          .because = result == kernels::EigenResult::kComplex
                                         ? "it has complex eigenvalues, and there is no complex dtype"
                                         : "it has numbers that are not finite"});
      std::copy(w.begin(), w.end(), args.out[0].as<T>() + i * n);
      std::copy(v.begin(), v.end(), args.out[1].as<T>() + i * m.step());
    });
  });
}

// A V = V diag(w) with columns of length 1: dA = V^-T [diag(dw) + F * (V^T dV - V^T V diag(V^T dV))] V^T with F_ij = 1
// / (w_j - w_i), 0 if they are equal.
Values general_gradient(const NoParams&, const GradientContext& g) {
  const Value dw = g.output_grad(0), dv = g.output_grad(1);
  if (!dw && !dv) return {};
  const Value w = g.output(0), v = g.output(1);
  const int last = spec_of(w).shape.ndim();
  Value inner = dw ? call(kMakeDiag, {dw}) : Value{};
  if (dv) {
    const Value gaps = expand_dims(w, last - 1) - expand_dims(w, last);
    const Value distinct = stop_gradient(greater(gaps * gaps, 0.0));
    const Value vt_dv = matrix_product(v, dv, true, false);
    const Value along = call(kMakeDiag, {call(kExtractDiag, {vt_dv})});
    const Value lengths = matrix_product(matrix_product(v, v, true, false), along, false, false);
    inner = add_all({inner, distinct / (gaps + (1.0 - distinct)) * (vt_dv - lengths)});
  }
  return {matrix_product(matrix_product(call(kInverse, {v}), inner, true, false), v, false, true)};
}

Values general(const Value& a) {
  require_square(a, "A");
  Values found = call_all(kGeneral, {in_factor_dtype(a)});
  for (Value& result : found) result = in_result_dtype(result, dtype_of(a));
  return found;
}

}  // namespace

void register_numpy_eigenvalues(OpRegistry& ops) {
  Sample unlike;
  unlike.inputs = {{3, 3}};
  unlike.check_gradient = false;
  unlike.note = "the gradient is that of symmetric matrices, random ones are not: numpy/test_np_linalg.py";
  Sample upper = unlike;
  upper.inputs = {{2, 3, 3}};
  upper.attrs = {{"UPLO", "U"}};
  ops.declare<TriangleName>("_npi_eigh")
      .doc(
          "Eigenvalues, in ascending order, and eigenvectors of symmetric matrices. Gradients need eigenvalues that "
          "differ.")
      .input("A", "stack of symmetric matrices (..., n, n)")
      .output("w", "(..., n): eigenvalues")
      .output("v", "(..., n, n): eigenvectors as columns")
      .compose(eigh_rule)
      .output_names(OutputNames::kNumberedSeveral)
      .sample(unlike)
      .sample(upper);
  ops.declare<TriangleName>("_npi_eigvalsh")
      .doc("Eigenvalues of symmetric matrices, in ascending order.")
      .input("A", "stack of symmetric matrices (..., n, n)")
      .output("w", "(..., n)")
      .compose(eigvalsh_rule)
      .sample(unlike)
      .sample(upper);
  Sample real;
  real.inputs = {{3, 1, 1}};
  real.note = "random matrices have complex eigenvalues: numpy/test_np_linalg.py";
  ops.declare("_np_real_eigen")
      .doc("Real eigenvalues and eigenvectors of float32 and float64.")
      .input("A", "stack of matrices (..., n, n)")
      .output("w", "(..., n)")
      .output("v", "(..., n, n): eigenvectors of length 1 as columns")
      .infer(infer_general)
      .cpu(run_general, kFactorDTypes)
      .may_raise()
      .cost([](const NoParams&, auto in, auto) { return 100 * cubic_cost(in[0].shape); })
      .gradient(general_gradient, Saves::all_outputs())
      .internal()
      .sample(real);
  ops.declare("_npi_eig")
      .doc("Eigenvalues and eigenvectors of matrices whose eigenvalues are real; raises ValueError for others.")
      .input("A", "stack of matrices (..., n, n)")
      .output("w", "(..., n): eigenvalues")
      .output("v", "(..., n, n): eigenvectors of length 1 as columns")
      .compose([](const NoParams&, const Values& in) { return general(in[0]); })
      .output_names(OutputNames::kNumberedSeveral)
      .sample(real);
  ops.declare("_npi_eigvals")
      .doc("Eigenvalues of matrices whose eigenvalues are real; raises ValueError for others.")
      .input("A", "stack of matrices (..., n, n)")
      .output("w", "(..., n)")
      .compose([](const NoParams&, const Values& in) -> Values { return {general(in[0])[0]}; })
      .sample(real);
  Sample positive;
  positive.inputs = {{3, 1, 1}};
  positive.low = 0.5;
  positive.note = "random matrices are positive definite only if they are numbers: numpy/test_np_linalg.py";
  ops.declare("_npi_cholesky")
      .doc("The lower triangular L with A = L L^T; raises ValueError if A is not positive definite.")
      .input("A", "stack of symmetric positive definite matrices (..., n, n)")
      .output("out", "shape of A")
      .compose([](const NoParams&, const Values& in) -> Values {
        require_square(in[0], "A");
        return {in_result_dtype(call(kCholesky, {in_factor_dtype(in[0])}), dtype_of(in[0]))};
      })
      .sample(positive);
}

}  // namespace hybridnet::ops
