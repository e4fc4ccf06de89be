// _npi_svd and _npi_pinv.
//   Gradients: Townsend, Differentiating the singular value decomposition, 2016; Golub and Pereyra, The differentiation
//   of pseudo-inverses, SIAM Journal on Numerical Analysis 10, 1973.
#include <algorithm>
#include <cmath>

#include "hybridnet/declare.h"
#include "kernels/elementwise/convert.h"
#include "kernels/linalg/spectra.h"
#include "ops/linalg/matrices.h"
#include "ops/linalg/matrix_rules.h"
#include "ops/numpy/factor_dtypes.h"
#include "storage/temporary.h"

namespace hybridnet::ops {
namespace {

const OpRef kDecompose{"_np_singular_values"}, kPseudoInverse{"_np_pseudo_inverse"}, kMakeDiag{"_linalg_makediag"},
    kMul{"broadcast_mul"}, kBroadcastTo{"_npi_broadcast_to"};

// The shape of a without its last two axes, followed by the given sizes.
Shape stack_of(const Shape& a, std::initializer_list<int64_t> sizes) {
  Shape out = Shape::scalar();
  for (int i = 0; i + 2 < a.ndim(); ++i) out.push_back(a[i]);
  for (const int64_t size : sizes) out.push_back(size);
  return out;
}

struct Decomposition {
  Temporary<double> u, s, v;
};

// Decomposes matrix i of the input.
template <typename T>
Decomposition decompose(const KernelArgs& args, const Matrices& m, int64_t i) {
  const int64_t k = std::min(m.rows, m.columns);
  const T* from = args.in[0].as<T>() + i * m.step();
  const Temporary<double> a(from, from + m.step());
  Decomposition d{Temporary<double>(static_cast<size_t>(m.rows * k)), Temporary<double>(static_cast<size_t>(k)),
                  Temporary<double>(static_cast<size_t>(k * m.columns))};
  if (!kernels::singular_values(m.rows, m.columns, a.data(), d.u.data(), d.s.data(), d.v.data()))
    throw ValueError(
        {.input = "A", .expected = "finite numbers", .given = "matrix " + std::to_string(i) + ", which has others"});
  return d;
}

// ------------------------------------------------------------------------------------------- svd
void infer_decompose(const NoParams&, InferContext& c) {
  c.unify_dtypes();
  require_matrices(c, 0, false);
  const Shape& a = c.in_shape(0);
  if (!a.known()) return;
  const int64_t rows = a[a.ndim() - 2], columns = a[a.ndim() - 1], k = std::min(rows, columns);
  c.set_out_shape(0, stack_of(a, {rows, k}));
  c.set_out_shape(1, stack_of(a, {k}));
  c.set_out_shape(2, stack_of(a, {k, columns}));
}

void run_decompose(const NoParams&, const KernelArgs& args) {
  const Matrices m(*args.in[0].shape);
  dispatch_factor(args.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    for_each_matrix(m.count, 30 * m.rows * m.step(), [&](int64_t i) {
      const Decomposition d = decompose<T>(args, m, i);
      const auto store = [i](const Temporary<double>& from, const TensorRef& to) {
        std::copy(from.begin(), from.end(), to.as<T>() + i * static_cast<int64_t>(from.size()));
      };
      store(d.u, args.out[0]);
      store(d.s, args.out[1]);
      store(d.v, args.out[2]);
    });
  });
}

// 1 / x, and 0 if x is 0.
Value reciprocal_or_zero(const Value& x) {
  const Value distinct = stop_gradient(greater(x * x, 0.0));
  return distinct / (x + (1.0 - distinct));
}

Value without_transpose(const Value& a) { return a - matrix_transpose(a); }

// The component of dU orthogonal to the columns of U, times 1 / s; null for a square U.
Value beside(const Value& u, const Value& du, const Value& inverse) {
  const Shape& shape = spec_of(u).shape;
  if (shape[shape.ndim() - 1] == shape[shape.ndim() - 2]) return {};
  const Value outside = du - matrix_product(u, matrix_product(u, du, true, false), false, false);
  return call(kMul, {outside, expand_dims(inverse, shape.ndim() - 2)});
}

// A = U S V, dA = U [F * (U^T dU - dU^T U) S + S F * (V dV^T - dV V^T) + dS] V plus the components orthogonal to U and
// V; F_ij = 1 / (s_j^2 - s_i^2), 0 if they are equal.
Values decompose_gradient(const NoParams&, const GradientContext& g) {
  const Value du = g.output_grad(0), ds = g.output_grad(1), dv = g.output_grad(2);
  if (!du && !ds && !dv) return {};
  const Value u = g.output(0), s = g.output(1), v = g.output(2);
  const int last = spec_of(s).shape.ndim();
  const Value as_row = expand_dims(s, last - 1), as_column = expand_dims(s, last);
  Value inner = ds ? call(kMakeDiag, {ds}) : Value{};
  Value outer;
  if (du || dv) {
    const Value gaps = reciprocal_or_zero((as_row - as_column) * (as_row + as_column));
    const Value inverse = reciprocal_or_zero(s);
    if (du) {
      inner = add_all({inner, gaps * without_transpose(matrix_product(u, du, true, false)) * as_row});
      if (const Value rest = beside(u, du, inverse)) outer = matrix_product(rest, v, false, false);
    }
    if (dv) {
      inner = add_all({inner, as_column * (gaps * without_transpose(matrix_product(v, dv, false, true)))});
      if (const Value rest = beside(matrix_transpose(v), matrix_transpose(dv), inverse))
        outer = add_all({outer, matrix_product(u, rest, false, true)});
    }
  }
  return {add_all({matrix_product(matrix_product(u, inner, false, false), v, false, false), outer})};
}

Values svd_rule(const NoParams&, const Values& in) {
  const DType dtype = dtype_of(in[0]);
  Values results = call_all(kDecompose, {in_factor_dtype(in[0])});
  for (Value& result : results) result = in_result_dtype(result, dtype);
  return results;
}

// ------------------------------------------------------------------------------------------- pinv
struct PseudoInverseParams {
  bool hermitian;
  double rcond;
  static void describe(ParamSchema<PseudoInverseParams>& schema) {
    schema.field("rcond", &PseudoInverseParams::rcond)
        .default_value(1e-15)
        .doc("Singular values up to this fraction of the largest one are treated as 0.");
    schema.field("hermitian", &PseudoInverseParams::hermitian)
        .default_value(false)
        .doc("Whether the matrices are symmetric; without effect.");
  }
};

void infer_pseudo_inverse(const NoParams&, InferContext& c) {
  c.unify_dtypes();
  require_matrices(c, 0, false);
  const Shape& a = c.in_shape(0);
  if (!a.known()) return;
  c.set_in_shape(1, stack_of(a, {}));
  c.set_out_shape(0, stack_of(a, {a[a.ndim() - 1], a[a.ndim() - 2]}));
}

void run_pseudo_inverse(const NoParams&, const KernelArgs& args) {
  const Matrices m(*args.in[0].shape);
  dispatch_factor(args.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    for_each_matrix(m.count, 30 * m.rows * m.step(), [&](int64_t i) {
      const Decomposition d = decompose<T>(args, m, i);
      const auto k = static_cast<int64_t>(d.s.size());
      Temporary<double> sums(static_cast<size_t>(m.step()));
      const double smallest = k > 0 ? static_cast<double>(args.in[1].as<T>()[i]) * d.s[0] : 0;
      for (int64_t j = 0; j < k && d.s[static_cast<size_t>(j)] > smallest; ++j)
        for (int64_t column = 0; column < m.columns; ++column) {
          const double factor = d.v[static_cast<size_t>(j * m.columns + column)] / d.s[static_cast<size_t>(j)];
          for (int64_t row = 0; row < m.rows; ++row)
            sums[static_cast<size_t>(column * m.rows + row)] += factor * d.u[static_cast<size_t>(row * k + j)];
        }
      std::copy(sums.begin(), sums.end(), args.out[0].as<T>() + i * m.step());
    });
  });
}

// dA = -P^T dP P^T + (I - A P) dP^T P P^T + P^T P dP^T (I - P A)
Values pseudo_inverse_gradient(const NoParams&, const GradientContext& g) {
  const Value dp = g.output_grad(0);
  if (!dp) return {};
  const Value a = g.input(0), p = g.output(0);
  const Value within = matrix_product(matrix_product(p, dp, true, false), p, false, true, -1.0);
  const Value right = matrix_product(dp, matrix_product(p, p, false, true), true, false);
  const Value beside_rows = right - matrix_product(a, matrix_product(p, right, false, false), false, false);
  const Value left = matrix_product(matrix_product(p, p, true, false), dp, false, true);
  const Value beside_columns = left - matrix_product(matrix_product(left, p, false, false), a, false, false);
  return {within + beside_rows + beside_columns, {}};
}

Value pseudo_inverse(const Value& a, const Value& rcond) {
  const Value matrix = in_factor_dtype(a);
  const Shape& shape = spec_of(matrix).shape;
  if (shape.ndim() >= 2 && shape.size() == 0)  // an empty stack may contain many matrices without elements
    return in_result_dtype(matrix_transpose(matrix), dtype_of(a));
  const Value number = spec_of(rcond).shape.size() == 1 ? literal_reshape(rcond, Shape::scalar()) : rcond;
  const Value ratios = call(kBroadcastTo, {stop_gradient(cast(number, dtype_of(matrix)))},
                            {{"shape", AttrValue(stack_of(spec_of(matrix).shape, {}))}});
  return in_result_dtype(call(kPseudoInverse, {matrix, ratios}), dtype_of(a));
}

Values scalar_rule(const PseudoInverseParams& p, const Values& in) {
  const DType dtype = factor_dtype(dtype_of(in[0]));
  return {pseudo_inverse(in[0], literal_reshape(full(Shape{1}, dtype, p.rcond), Shape::scalar()))};
}

struct HermitianParams {
  bool hermitian;
  static void describe(ParamSchema<HermitianParams>& schema) {
    schema.field("hermitian", &HermitianParams::hermitian)
        .default_value(false)
        .doc("Whether the matrices are symmetric; without effect.");
  }
};

}  // namespace

void register_numpy_singular_values(OpRegistry& ops) {
  const auto cost = [](const NoParams&, auto in, auto) { return 40 * cubic_cost(in[0].shape); };
  ops.declare("_np_singular_values")
      .doc("Singular values and vectors of float32 and float64.")
      .input("A", "stack of matrices (..., m, n)")
      .output("UT", "(..., m, k), orthonormal columns; k = min(m, n)")
      .output("L", "(..., k), in descending order")
      .output("V", "(..., k, n), orthonormal rows")
      .infer(infer_decompose)
      .cpu(run_decompose, kFactorDTypes)
      .may_raise()
      .cost(cost)
      .gradient(decompose_gradient, Saves::all_outputs())
      .internal()
      .sample({{2, 3}})
      .sample({{2, 3, 2}});
  ops.declare("_npi_svd")
      .doc(
          "Singular value decomposition A = UT diag(L) V. Gradients through UT and V require distinct nonzero singular "
          "values.")
      .input("A", "stack of matrices (..., m, n)")
      .output("UT", "(..., m, k), orthonormal columns; k = min(m, n)")
      .output("L", "(..., k), in descending order")
      .output("V", "(..., k, n), orthonormal rows")
      .compose(svd_rule)
      .output_names(OutputNames::kNumberedSeveral)
      .sample({{3, 3}})
      .sample({{2, 2, 4}});
  ops.declare("_np_pseudo_inverse")
      .doc("Pseudo-inverses of float32 and float64.")
      .input("A", "stack of matrices (..., m, n)")
      .input("rcond", "one number per matrix; singular values up to this fraction of the largest one are treated as 0")
      .output("out", "(..., n, m)")
      .infer(infer_pseudo_inverse)
      .cpu(run_pseudo_inverse, kFactorDTypes)
      .may_raise()
      .cost(cost)
      .gradient(pseudo_inverse_gradient, Saves::of({0}, {0}))
      .internal()
      .sample({{3, 2}, Shape::scalar()}, {}, 0.0, 0.1);
  ops.declare<PseudoInverseParams>("_npi_pinv_scalar_rcond")
      .doc("Moore-Penrose pseudo-inverses. Gradients are valid where the rank is constant.")
      .input("A", "stack of matrices (..., m, n)")
      .output("out", "(..., n, m)")
      .compose(scalar_rule)
      .sample({{3, 2}})
      .sample({{2, 2, 3}});
  Sample ratios;
  ratios.inputs = {{2, 3, 2}, {2}};
  ratios.low = 0;
  ratios.high = 1e-3;
  ratios.check_gradient = false;
  ratios.note = "rcond has none";
  Sample nothing_kept = ratios;  // bools, too: their other value, 0, would keep every singular value
  nothing_kept.low = nothing_kept.high = 1;
  ops.declare<HermitianParams>("_npi_pinv")
      .doc("Moore-Penrose pseudo-inverses. Gradients are valid where the rank is constant.")
      .input("A", "stack of matrices (..., m, n)")
      .input("rcond",
             "broadcasts to the stack; singular values up to this fraction of the largest one are treated as 0")
      .output("out", "(..., n, m)")
      .compose([](const HermitianParams&, const Values& in) -> Values { return {pseudo_inverse(in[0], in[1])}; })
      .sample(ratios)
      .sample(nothing_kept);
}

}  // namespace hybridnet::ops
