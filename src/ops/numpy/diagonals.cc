// Diagonals, triangles and grids of indices, in NumPy's interface.
#include <algorithm>

#include "hybridnet/declare.h"
#include "ops/numpy/promote.h"
#include "ops/shape_param.h"

namespace hybridnet::ops {
namespace {

const OpRef kDiag{"diag"}, kEye{"_eye"}, kArange{"_arange"}, kNpBroadcastTo{"_npi_broadcast_to"}, kWhere{"where"},
    kGreaterEqual{"broadcast_greater_equal"}, kStack{"stack"};

constexpr const char* kNoInput = "depends on no input";

struct OffsetParams {
  int32_t k;
  static void describe(ParamSchema<OffsetParams>& schema) {
    schema.field("k", &OffsetParams::k)
        .default_value(0)
        .doc("Index of the diagonal: 0 the main one, positive above, negative below.");
  }
};

struct DiagonalParams {
  int32_t offset, axis1, axis2;
  static void describe(ParamSchema<DiagonalParams>& schema) {
    schema.field("offset", &DiagonalParams::offset)
        .default_value(0)
        .doc("Index of the diagonal: 0 the main one, positive above, negative below.");
    schema.field("axis1", &DiagonalParams::axis1).default_value(0).doc("The axis of rows.");
    schema.field("axis2", &DiagonalParams::axis2).default_value(1).doc("The axis of columns.");
  }
};

// A range of int64 values along `axis` of an array with `ndim` axes.
Value range_along(int64_t begin, int64_t end, int axis, int ndim) {
  Shape shape = Shape::scalar();
  for (int i = 0; i < ndim; ++i) shape.push_back(i == axis ? end - begin : 1);
  if (begin == end) return literal_zeros(shape, DType::kInt64);
  return literal_reshape(call(kArange, Values{}, {{"start", begin}, {"stop", end}, {"dtype", "int64"}}), shape);
}

Value np_broadcast_to(const Value& a, const Shape& shape) {
  return spec_of(a).shape == shape ? a : call(kNpBroadcastTo, {a}, {{"shape", AttrValue(shape)}});
}

// The diagonals of two axes, as the last axis; a diagonal outside the matrix is empty.
Value diagonals(const Value& a, int64_t k, int axis1, int axis2) {
  const Shape& shape = spec_of(a).shape;
  if (shape.ndim() < 2) throw ShapeError({.input = "a", .expected = "at least two axes", .given = shape.str()});
  const int row = normalize_axis(axis1, shape.ndim(), "axis1"), column = normalize_axis(axis2, shape.ndim(), "axis2");
  const bool meets = row == column || (k < shape[column] && -k < shape[row]);
  if (meets) return call(kDiag, {a}, {{"k", k}, {"axis1", row}, {"axis2", column}});
  Shape empty = Shape::scalar();
  for (int i = 0; i < shape.ndim(); ++i)
    if (i != row && i != column) empty.push_back(shape[i]);
  empty.push_back(0);
  return literal_reshape(slice_axis(a, row, 0, 0), empty);
}

Values diag_rule(const OffsetParams& p, const Values& in) {
  const Shape& shape = spec_of(in[0]).shape;
  if (shape.ndim() != 1 && shape.ndim() != 2)
    throw ShapeError({.input = "data",
                      .expected = "a vector or a matrix",
                      .given = shape.str(),
                      .fix = "use diagonal for arrays of more axes"});
  if (shape.ndim() == 1) return {call(kDiag, {in[0]}, {{"k", int64_t{p.k}}})};
  return {diagonals(in[0], p.k, 0, 1)};
}

// Elements on and below (upper: on and above) diagonal k, others 0. A vector is every row of a square matrix.
template <bool kUpper>
Values triangle_rule(const OffsetParams& p, const Values& in) {
  Value a = in[0];
  Shape shape = spec_of(a).shape;
  if (shape.ndim() == 0) throw ShapeError({.input = "data", .expected = "at least one axis", .given = "a scalar"});
  if (shape.ndim() == 1) {
    shape = Shape{shape[0], shape[0]};
    a = np_broadcast_to(a, shape);
  }
  if (shape.size() == 0) return {a};  // an empty array may have axes that are too long for a mask
  const int64_t rows = shape[shape.ndim() - 2], columns = shape[shape.ndim() - 1], k = p.k;
  const Value row = range_along(k, rows + k, 0, 2), column = range_along(0, columns, 1, 2);
  const Value mask = kUpper ? call(kGreaterEqual, {column, row}) : call(kGreaterEqual, {row, column});
  return {call(kWhere, {np_broadcast_to(cast(mask, DType::kBool), shape), a, zeros_like(a)})};
}

Values diag_indices_rule(const NoParams&, const Values& in) {
  const Shape& shape = spec_of(in[0]).shape;
  if (shape.ndim() < 2 || !std::all_of(shape.begin(), shape.end(), [&](int64_t size) { return size == shape[0]; }))
    throw ShapeError({.input = "data", .expected = "at least two axes of one size", .given = shape.str()});
  return {np_broadcast_to(range_along(0, shape[0], 0, 1), Shape{shape.ndim(), shape[0]})};
}

// ---------------------------------------------------------------------------------------------------- made from sizes
template <typename P, typename Schema>
void describe_made(Schema& schema, const char* dtype) {
  describe_ctx<P>(schema);
  schema.field("dtype", &P::dtype).default_value(dtype).doc("Dtype of the output.");
}

struct NumpyEyeParams {
  int64_t N, k;
  std::optional<int64_t> M;
  std::string ctx;
  DType dtype;
  static void describe(ParamSchema<NumpyEyeParams>& schema) {
    schema.field("N", &NumpyEyeParams::N).at_least(0).doc("Number of rows.");
    schema.field("M", &NumpyEyeParams::M).none_by_default().at_least(0).doc("Number of columns; None: N.");
    schema.field("k", &NumpyEyeParams::k).default_value(0).doc("Index of the diagonal.");
    describe_made<NumpyEyeParams>(schema, "float32");
  }
};

Value eye(int64_t rows, int64_t columns, int64_t k, DType dtype) {
  if (rows == 0 || columns == 0) return literal_zeros(Shape{rows, columns}, dtype);
  return call(kEye, Values{}, {{"N", rows}, {"M", columns}, {"k", k}, {"dtype", dtype_name(dtype)}});
}

struct IdentityParams {
  Tuple shape;
  std::string ctx;
  DType dtype;
  static void describe(ParamSchema<IdentityParams>& schema) {
    schema.field("shape", &IdentityParams::shape).default_value(AttrValue(Tuple::scalar())).doc("(n, n).");
    describe_made<IdentityParams>(schema, "float32");
    schema.check([](const IdentityParams& p) {
      if (p.shape.ndim() != 2 || p.shape[0] != p.shape[1] || p.shape[0] < 0)
        throw ParamError({.input = "shape", .expected = "two equal sizes", .given = p.shape.str()});
    });
  }
};

struct IndicesParams {
  Tuple dimensions;
  std::string ctx;
  DType dtype;
  static void describe(ParamSchema<IndicesParams>& schema) {
    schema.field("dimensions", &IndicesParams::dimensions).doc("Sizes of the grid.");
    describe_made<IndicesParams>(schema, "int32");
  }
};

Values indices_rule(const IndicesParams& p, const Values&) {
  const int ndim = p.dimensions.ndim();
  if (ndim == 0) return {literal_zeros(Shape{0}, p.dtype)};
  for (int axis = 0; axis < ndim; ++axis)  // check before any computation
    if (p.dimensions[axis] < 0)
      throw ParamError({.input = "dimensions", .expected = "sizes that are not negative", .given = p.dimensions.str()});
  Values grids;
  for (int axis = 0; axis < ndim; ++axis) {
    grids.push_back(np_broadcast_to(cast(range_along(0, p.dimensions[axis], axis, ndim), p.dtype), p.dimensions));
  }
  return {call(kStack, grids, {{"axis", 0}})};
}

template <bool kUpper>
OpBuilder<OffsetParams> declare_triangle(OpRegistry& ops, const char* name, const char* doc) {
  auto op = ops.declare<OffsetParams>(name);
  op.doc(doc)
      .input("data", "at least one axis; a vector is used as every row")
      .output("out", "shape of data, (n, n) for a vector")
      .compose(triangle_rule<kUpper>)
      .sample({{3, 4}})
      .sample({{2, 3, 3}}, {{"k", "-1"}})
      .sample({{3}}, {{"k", "1"}});
  return op;
}

}  // namespace

void register_numpy_diagonals(OpRegistry& ops) {
  ops.declare<OffsetParams>("_np_diag")
      .doc("A diagonal of a matrix, or a matrix with a vector on a diagonal.")
      .input("data", "a vector or a matrix, any dtype")
      .names_its_input()
      .output("out", "a vector or a matrix, dtype of data")
      .compose(diag_rule)
      .sample({{3}}, {{"k", "-1"}})
      .sample({{3, 4}}, {{"k", "1"}})
      .sample({{3, 4}}, {{"k", "7"}});
  ops.declare<OffsetParams>("_np_diagflat")
      .doc("A matrix with all elements of an array on a diagonal.")
      .input("data", "any shape, any dtype")
      .names_its_input()
      .output("out", "square matrix, dtype of data")
      .compose([](const OffsetParams& p, const Values& in) -> Values {
        return {call(kDiag, {literal_reshape(in[0], Shape{-1})}, {{"k", int64_t{p.k}}})};
      })
      .sample({{2, 2}})
      .sample({{3}}, {{"k", "1"}});
  ops.declare<DiagonalParams>("_np_diagonal")
      .doc("The diagonals of two axes.")
      .input("data", "at least two axes, any dtype")
      .names_its_input()
      .output("out", "data without the two axes, the diagonal last")
      .compose([](const DiagonalParams& p, const Values& in) -> Values {
        return {diagonals(in[0], p.offset, p.axis1, p.axis2)};
      })
      .sample({{3, 4}})
      .sample({{2, 3, 4}}, {{"offset", "-1"}, {"axis1", "2"}, {"axis2", "0"}});
  declare_triangle<false>(ops, "_npi_tril", "Elements on and below a diagonal of the last two axes, others 0.")
      .names_its_input();
  declare_triangle<true>(ops, "_npi_triu", "Elements on and above a diagonal of the last two axes, others 0.");
  ops.declare("_npi_diag_indices_from")
      .doc("The indices of the main diagonal of an array whose axes are of one size.")
      .input("data", "at least two axes of one size")
      .names_its_input()
      .output("out", "(number of axes, size), int64")
      .compose(diag_indices_rule)
      .sample({.inputs = {{3, 3}}, .check_gradient = false, .note = "indices"});
}

void register_numpy_grids(OpRegistry& ops) {
  ops.declare<NumpyEyeParams>("_npi_eye")
      .doc("A matrix of zeros with ones on a diagonal.")
      .output("out", "shape (N, M)")
      .compose(
          [](const NumpyEyeParams& p, const Values&) -> Values { return {eye(p.N, p.M.value_or(p.N), p.k, p.dtype)}; })
      .sample({.attrs = {{"N", "3"}}, .check_gradient = false, .note = kNoInput})
      .sample({.attrs = {{"N", "2"}, {"M", "4"}, {"k", "1"}, {"dtype", "int32"}},
               .check_gradient = false,
               .note = kNoInput})
      .sample({.attrs = {{"N", "2"}, {"M", "0"}}, .check_gradient = false, .note = kNoInput});
  ops.declare<IdentityParams>("_npi_identity")
      .doc("The identity matrix.")
      .output("out", "shape (n, n)")
      .compose(
          [](const IdentityParams& p, const Values&) -> Values { return {eye(p.shape[0], p.shape[1], 0, p.dtype)}; })
      .sample({.attrs = {{"shape", "(3, 3)"}}, .check_gradient = false, .note = kNoInput});
  ops.declare<IndicesParams>("_npi_indices")
      .doc("The indices of every position of a grid, axis by axis.")
      .output("out", "(number of axes, *dimensions)")
      .compose(indices_rule)
      .sample({.attrs = {{"dimensions", "(2, 3)"}}, .check_gradient = false, .note = kNoInput})
      .sample({.attrs = {{"dimensions", "(4,)"}, {"dtype", "float32"}}, .check_gradient = false, .note = kNoInput})
      .sample({.attrs = {{"dimensions", "(2, 0)"}}, .check_gradient = false, .note = kNoInput});
}

}  // namespace hybridnet::ops
