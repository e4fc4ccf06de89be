// Linear systems of NumPy's interface: solve, inv, det, slogdet, tensorsolve, tensorinv.
#include <algorithm>
#include <numeric>

#include "hybridnet/declare.h"
#include "kernels/linalg/factorizations.h"
#include "ops/linalg/matrices.h"
#include "ops/linalg/matrix_rules.h"
#include "ops/numpy/factor_dtypes.h"
#include "storage/temporary.h"

namespace hybridnet::ops {
namespace {

const OpRef kSolve{"_np_solve_matrices"}, kInverse{"_linalg_inverse"}, kDet{"_linalg_det"}, kSlogdet{"_linalg_slogdet"},
    kBroadcastTo{"_npi_broadcast_to"};

// ------------------------------------------------------------------------------------------- solve
void infer_solve(const NoParams&, InferContext& c) {
  c.unify_dtypes();
  require_matrices(c, 0, true);
  require_matrices(c, 1, false);
  c.set_out_shape(0, c.in_shape(1));
  const Shape &a = c.in_shape(0), &b = c.in_shape(1);
  if (!a.known() || !b.known()) return;
  bool fits = a.ndim() == b.ndim() && a[a.ndim() - 1] == b[b.ndim() - 2];
  for (int i = 0; fits && i + 2 < a.ndim(); ++i) fits = a[i] == b[i];
  if (!fits)
    throw ShapeError(
        {.input = "B", .expected = "as many rows as A, " + a.str() + ", has", .given = "shape " + b.str()});
}

void run_solve(const NoParams&, const KernelArgs& args) {
  const Matrices m(*args.in[0].shape), right(*args.in[1].shape);
  dispatch_factor(args.in[0].dtype, [&](auto zero) {
    using T = decltype(zero);
    for_each_matrix(m.count, m.rows * (m.step() + right.step()), [&](int64_t i) {
      const T* a = args.in[0].as<T>() + i * m.step();
      Temporary<T> copy(a, a + m.step());
      const kernels::LuFactors<T> lu(m.rows, copy.data());
      if (lu.singular())
        throw ValueError({.input = "A",
                          .expected = "matrices that have an inverse",
                          .given = "matrix " + std::to_string(i) + ", which is singular"});
      lu.solve(args.in[1].as<T>() + i * right.step(), right.columns, args.out[0].as<T>() + i * right.step());
    });
  });
}

// dB = A^-T dX, dA = -dB X^T
Values solve_gradient(const NoParams&, const GradientContext& g) {
  if (!g.output_grad(0)) return {};
  const Value db = call(kSolve, {matrix_transpose(g.input(0)), g.output_grad(0)});
  return {g.wants(0) ? matrix_product(db, g.output(0), false, true, -1.0) : Value{}, db};
}

Shape with_stack(const Shape& stack, const Shape& matrix) {
  Shape result = stack;
  result.push_back(matrix[matrix.ndim() - 2]);
  result.push_back(matrix[matrix.ndim() - 1]);
  return result;
}

// The shape to which the axes before the matrices of both broadcast.
Shape common_stack(const Shape& a, const Shape& b) {
  const int ndim = std::max(a.ndim(), b.ndim()) - 2;
  Shape stack = Shape::unknown(ndim);
  for (int i = 0; i < ndim; ++i) {
    const int from_a = i - ndim + a.ndim() - 2, from_b = i - ndim + b.ndim() - 2;
    const int64_t x = from_a < 0 ? 1 : a[from_a], y = from_b < 0 ? 1 : b[from_b];
    stack[i] = x == 1 ? y : x;
  }
  return stack;
}

// True if b, with one axis less than a, holds a vector for every matrix of a.
bool stack_matches(const Shape& a, const Shape& b) {
  for (int i = 0; i < b.ndim(); ++i)
    if (b[i] != a[i]) return false;
  return true;
}

// b is a vector if it has one axis, and holds vectors if its sizes are those of a without the last one.
Value solve(const Value& a, const Value& b) {
  require_square(a, "A");
  const Shape b_shape = spec_of(b).shape;
  const int ndim = spec_of(a).shape.ndim();
  if (b_shape.ndim() == 0) throw ShapeError({.input = "B", .expected = "at least one axis", .given = "a scalar"});
  const bool vectors = b_shape.ndim() == 1 || (b_shape.ndim() == ndim - 1 && stack_matches(spec_of(a).shape, b_shape));
  const Value columns = vectors ? expand_dims(b, b_shape.ndim()) : b;
  const Shape stack = common_stack(spec_of(a).shape, spec_of(columns).shape);
  const auto stacked = [&](const Value& v) {
    return call(kBroadcastTo, {v}, {{"shape", AttrValue(with_stack(stack, spec_of(v).shape))}});
  };
  const Value x = call(kSolve, {stacked(a), stacked(columns)});
  if (!vectors) return x;
  Shape shape = spec_of(x).shape;
  Shape left = Shape::scalar();
  for (int i = 0; i + 1 < shape.ndim(); ++i) left.push_back(shape[i]);
  return literal_reshape(x, left);
}

Values solve_rule(const NoParams&, const Values& in) {
  const Values both = in_common_dtype(in);
  return {in_result_dtype(solve(in_factor_dtype(both[0]), in_factor_dtype(both[1])), dtype_of(both[0]))};
}

// ------------------------------------------------------------------------------------------- inv, det, slogdet
Values inv_rule(const NoParams&, const Values& in) {
  require_square(in[0], "A");
  return {in_result_dtype(call(kInverse, {in_factor_dtype(in[0])}), dtype_of(in[0]))};
}

Values determinants(const OpRef& op, const Value& a) {
  require_square(a, "A");
  Values results = call_all(op, {in_factor_dtype(a)});
  for (Value& v : results) v = in_result_dtype(without_axes_left(v, spec_of(a).shape.ndim() - 2), dtype_of(a));
  return results;
}

// ------------------------------------------------------------------------------------------- tensors
struct TensorInvParams {
  int32_t ind;
  static void describe(ParamSchema<TensorInvParams>& schema) {
    schema.field("ind", &TensorInvParams::ind).default_value(2).at_least(1).doc("Number of axes of the rows.");
  }
};

Shape joined(const Shape& a, int from, int to) {
  Shape result = Shape::scalar();
  for (int i = from; i < to; ++i) result.push_back(a[i]);
  return result;
}

Shape followed_by(Shape a, const Shape& b) {
  for (const int64_t size : b) a.push_back(size);
  return a;
}

Values tensorinv_rule(const TensorInvParams& p, const Values& in) {
  const Shape shape = spec_of(in[0]).shape;
  const int ind = std::min<int>(p.ind, shape.ndim());
  const Shape rows = joined(shape, 0, ind), columns = joined(shape, ind, shape.ndim());
  if (rows.size() != columns.size())
    throw ShapeError({.input = "a",
                      .expected = "as many elements in the first " + std::to_string(p.ind) + " axes as in the others",
                      .given = "shape " + shape.str()});
  const Value matrix = literal_reshape(in_factor_dtype(in[0]), Shape{rows.size(), rows.size()});
  const Value inverse = call(kInverse, {matrix});
  return {in_result_dtype(literal_reshape(inverse, followed_by(columns, rows)), dtype_of(in[0]))};
}

struct TensorSolveParams {
  Tuple a_axes;
  static void describe(ParamSchema<TensorSolveParams>& schema) {
    schema.field("a_axes", &TensorSolveParams::a_axes)
        .default_value(AttrValue(Tuple::scalar()))
        .doc("Axes of a that are first moved to its end.");
  }
};

Value with_axes_last(const Value& a, const Tuple& axes) {
  if (axes.ndim() == 0) return a;
  const int ndim = spec_of(a).shape.ndim();
  std::vector<int> last;
  for (const int64_t axis : axes) last.push_back(normalize_axis(axis, ndim, "a_axes"));
  Tuple order = Tuple::scalar();
  for (int i = 0; i < ndim; ++i)
    if (std::find(last.begin(), last.end(), i) == last.end()) order.push_back(i);
  for (const int axis : last) order.push_back(axis);
  return transpose(a, order);
}

Values tensorsolve_rule(const TensorSolveParams& p, const Values& in) {
  const Values both = in_common_dtype(in);
  const Value a = with_axes_last(in_factor_dtype(both[0]), p.a_axes), b = in_factor_dtype(both[1]);
  const Shape shape = spec_of(a).shape, right = spec_of(b).shape;
  // x has the sizes of a's last axes; their number is a.ndim - b.ndim. If that is not positive, all sizes are 1 and
  // NumPy's slice determines the axes.
  const int more = shape.ndim() - right.ndim();
  const int begin = more > 0 ? right.ndim() : std::min(-more, shape.ndim());
  const Shape unknowns = joined(shape, begin, shape.ndim());
  if (unknowns.size() != right.size() || shape.size() != right.size() * right.size())
    throw ShapeError({.input = "a",
                      .expected = "as many elements in the axes of b, " + right.str() + ", as in the others",
                      .given = "shape " + shape.str()});
  const Value matrix = literal_reshape(a, Shape{right.size(), right.size()});
  const Value x = call(kSolve, {matrix, literal_reshape(b, Shape{right.size(), 1})});
  return {in_result_dtype(literal_reshape(x, unknowns), dtype_of(both[0]))};
}

// Random integer matrices larger than 1x1 may be singular; larger ones: tests/python/numpy/linalg_cases.py.
Sample invertible(std::vector<Shape> inputs, std::vector<std::pair<std::string, std::string>> attrs = {}) {
  Sample s;
  s.inputs = std::move(inputs);
  s.attrs = std::move(attrs);
  s.low = 1;
  s.high = 3;
  return s;
}

}  // namespace

void register_numpy_systems(OpRegistry& ops) {
  ops.declare("_np_solve_matrices")
      .doc("Solves A X = B for X, for equally long stacks of float32 and float64.")
      .input("A", "(..., n, n)")
      .input("B", "(..., n, k)")
      .output("X", "shape of B")
      .infer(infer_solve)
      .cpu(run_solve, kFactorDTypes)
      .may_raise()
      .cost([](const NoParams&, auto in, auto) { return 2 * cubic_cost(in[0].shape) + 5 * in[1].shape.size(); })
      .gradient(solve_gradient, Saves::of({0}, {0}))
      .internal()
      .sample({{2, 3, 3}, {2, 3, 2}});
  ops.declare("_npi_solve")
      .doc("Solves A X = B for X; raises ValueError for a singular A. Axes before the matrices broadcast.")
      .input("A", "stack of matrices (..., n, n)")
      .input("B", "stack of matrices (..., n, k); or vectors (n,) or (..., n), one for each matrix of A")
      .output("X", "shape of B, in the common dtype")
      .compose(solve_rule)
      .sample(invertible({{2, 1, 1}, {1, 2}}))
      .sample(invertible({{1, 1}, Shape{1}}))
      .sample(invertible({{3, 1, 1}, {3, 1}}))
      .sample(invertible({{2, 1, 1, 1}, {4, 1, 2}}));
  ops.declare("_npi_inv")
      .doc("The inverse of every matrix; raises ValueError for a singular matrix.")
      .input("A", "stack of matrices (..., n, n)")
      .output("out", "shape of A")
      .compose(inv_rule)
      .sample(invertible({{1, 1}}))
      .sample(invertible({{2, 1, 1}}));
  ops.declare("_npi_det")
      .doc("The determinant of every matrix.")
      .input("A", "stack of matrices (..., n, n)")
      .output("out", "the axes of A before the last two")
      .compose([](const NoParams&, const Values& in) { return determinants(kDet, in[0]); })
      .sample({{3, 3}})
      .sample({{2, 2, 2}});
  ops.declare("_npi_slogdet")
      .doc("The sign and the logarithm of the absolute value of every determinant: 0 and -inf for a singular matrix.")
      .input("A", "stack of matrices (..., n, n)")
      .output("sign", "-1, 0 or 1; the axes of A before the last two")
      .output("logabsdet", "shape of sign")
      .compose([](const NoParams&, const Values& in) { return determinants(kSlogdet, in[0]); })
      .sample({{3, 3}})
      .sample({{2, 2, 2}});
  ops.declare<TensorInvParams>("_npi_tensorinv")
      .doc("The tensor whose tensordot with a, over ind axes, is the identity.")
      .input("a", "as many elements in the first ind axes as in the others")
      .output("out", "the remaining axes, then the first ind axes")
      .compose(tensorinv_rule)
      .sample(invertible({{1, 1}}, {{"ind", "1"}}))
      .sample(invertible({{1, 1, 1, 1}}));
  ops.declare<TensorSolveParams>("_npi_tensorsolve")
      .doc("Solves tensordot(a, x, x.ndim) = b for x.")
      .input("a", "the axes of b, then those of x; both have the same number of elements")
      .input("b", "array of any shape")
      .output("x", "the axes of a after those of b")
      .compose(tensorsolve_rule)
      .sample(invertible({{1, 1, 1}, Shape{1}}))
      .sample(invertible({{1, 1}, Shape{1}}, {{"a_axes", "(0,)"}}));
}

}  // namespace hybridnet::ops
