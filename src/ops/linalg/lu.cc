// _linalg_inverse, _linalg_det, _linalg_slogdet: by LU factorization with partial pivoting.
#include <cmath>

#include "hybridnet/declare.h"
#include "kernels/linalg/factorizations.h"
#include "ops/linalg/matrices.h"
#include "ops/linalg/matrix_rules.h"
#include "storage/temporary.h"

namespace hybridnet::ops {
namespace {

const OpRef kInverse{"_linalg_inverse"}, kInverseOrZero{"_linalg_inverse_or_zero"};

// Calls f(factors, i) with the LU factors of every matrix of input 0.
template <typename F>
void for_each_factorization(const KernelArgs& args, F&& f) {
  const Matrices m(*args.in[0].shape);
  dispatch_factor(args.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    for_each_matrix(m.count, m.rows * m.step(), [&](int64_t i) {
      const T* a = args.in[0].as<T>() + i * m.step();
      Temporary<T> copy(a, a + m.step());
      f(kernels::LuFactors<T>(m.rows, copy.data()), i);
    });
  });
}

void run_inverse(const KernelArgs& args, bool zero_if_singular) {
  for_each_factorization(args, [&]<typename T>(const kernels::LuFactors<T>& lu, int64_t i) {
    T* out = args.out[0].as<T>() + i * lu.n * lu.n;
    if (lu.singular()) {
      if (zero_if_singular) return void(std::fill_n(out, lu.n * lu.n, T(0)));
      throw ValueError({.input = "A",
                        .expected = "matrices that have an inverse",
                        .given = "matrix " + std::to_string(i) + ", which is singular"});
    }
    Temporary<T> identity(static_cast<size_t>(lu.n * lu.n), T(0));
    for (int64_t k = 0; k < lu.n; ++k) identity[static_cast<size_t>(k * lu.n + k)] = 1;
    lu.solve(identity.data(), lu.n, out);
  });
}

// dA = -B^T dB B^T
Values inverse_gradient(const NoParams&, const GradientContext& g) {
  if (!g.output_grad(0)) return {};
  const Value inverse = g.output(0);
  return {matrix_product(matrix_product(inverse, g.output_grad(0), true, false), inverse, false, true, -1.0)};
}

void infer_determinants(InferContext& c) {
  c.unify_dtypes();
  require_matrices(c, 0, true);
  if (!c.in_shape(0).rank_known()) return;
  for (int i = 0; i < c.num_out(); ++i) c.set_out_shape(i, stack_shape(c.in_shape(0), 2));
}

void run_det(const NoParams&, const KernelArgs& args) {
  for_each_factorization(args, [&]<typename T>(const kernels::LuFactors<T>& lu, int64_t i) {
    T product = static_cast<T>(lu.sign());
    for (int64_t k = 0; k < lu.n; ++k) product *= lu.lu[k * lu.n + k];
    args.out[0].as<T>()[i] = product;
  });
}

void run_slogdet(const NoParams&, const KernelArgs& args) {
  for_each_factorization(args, [&]<typename T>(const kernels::LuFactors<T>& lu, int64_t i) {
    T sign = static_cast<T>(lu.sign()), sum = 0;
    for (int64_t k = 0; k < lu.n; ++k) {
      const T pivot = lu.lu[k * lu.n + k];
      if (pivot < 0) sign = -sign;
      if (pivot == 0) sign = 0;
      sum += std::log(std::abs(pivot));
    }
    args.out[0].as<T>()[i] = sign;
    args.out[1].as<T>()[i] = sum;
  });
}

// dA = (factor per matrix) A^-T; zero where A is singular.
Values determinant_gradient(const GradientContext& g, const Value& factor) {
  const Value inverse = call(kInverseOrZero, {g.input(0)});
  return {matrix_transpose(inverse) * per_matrix(factor, inverse)};
}

OpBuilder<NoParams> declare_lu(OpRegistry& ops, const std::string& name) {
  return ops.declare("_linalg_" + name)
      .input("A", "stack of square matrices (..., n, n)")
      .cost([](const NoParams&, auto in, auto out) {
        (void)out;
        return 2 * cubic_cost(in[0].shape);
      })
      .sample({{3, 3}})
      .sample({{2, 2, 2}});
}

}  // namespace

void register_lu(OpRegistry& ops) {
  declare_lu(ops, "inverse")
      .alias("linalg_inverse")
      .doc("The inverse of every matrix. Raises ValueError for a singular one.")
      .output("output", "shape and dtype of A")
      .infer([](const NoParams&, InferContext& c) { infer_square(c); })
      .cpu([](const NoParams&, const KernelArgs& a) { run_inverse(a, false); }, kFactorDTypes)
      .may_raise()
      .gradient(inverse_gradient, Saves::of({}, {0}))
      .amp(AmpType::kFloat);
  declare_lu(ops, "inverse_or_zero")
      .doc("The inverse of every matrix, zeros for singular ones.")
      .output("output", "shape and dtype of A")
      .infer([](const NoParams&, InferContext& c) { infer_square(c); })
      .cpu([](const NoParams&, const KernelArgs& a) { run_inverse(a, true); }, kFactorDTypes)
      .gradient(inverse_gradient, Saves::of({}, {0}))
      .internal();
  declare_lu(ops, "det")
      .alias("linalg_det")
      .doc("The determinant of every matrix. The gradient of a singular matrix is zero.")
      .output("output", "the axes of A before the last two; (1,) for a single matrix")
      .output_names(OutputNames::kNumbered)
      .infer([](const NoParams&, InferContext& c) { infer_determinants(c); })
      .cpu(run_det, kFactorDTypes)
      .gradient(
          [](const NoParams&, const GradientContext& g) {
            return g.output_grad(0) ? determinant_gradient(g, g.output_grad(0) * g.output(0)) : Values{};
          },
          Saves::of({0}, {0}))
      .amp(AmpType::kFloat);
  declare_lu(ops, "slogdet")
      .alias("linalg_slogdet")
      .doc("The sign and the logarithm of the absolute value of every determinant: 0 and -inf for a singular matrix.")
      .output("sign", "-1, 0 or 1; the axes of A before the last two; (1,) for a single matrix")
      .output("logabsdet", "shape of sign")
      .output_names(OutputNames::kNumberedSeveral)
      .infer([](const NoParams&, InferContext& c) { infer_determinants(c); })
      .cpu(run_slogdet, kFactorDTypes)
      .gradient(
          [](const NoParams&, const GradientContext& g) {
            return g.output_grad(1) ? determinant_gradient(g, g.output_grad(1)) : Values{};
          },
          Saves::of({0}))
      .amp(AmpType::kFloat);
}

}  // namespace hybridnet::ops
