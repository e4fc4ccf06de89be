// tensordot, trace, kron and cross of NumPy's interface.
#include <algorithm>

#include "hybridnet/declare.h"
#include "ops/numpy/promote.h"

namespace hybridnet::ops {
namespace {

const OpRef kDot{"dot"}, kDiag{"diag"}, kSum{"_np_sum"}, kMul{"broadcast_mul"};

std::string axes_text(const std::vector<int>& axes) {
  Tuple t = Tuple::scalar();
  for (const int axis : axes) t.push_back(axis);
  return t.str();
}

// ------------------------------------------------------------------------------------------- tensordot
struct TensordotParams {
  Tuple a_axes_summed, b_axes_summed;
  static void describe(ParamSchema<TensordotParams>& schema) {
    schema.field("a_axes_summed", &TensordotParams::a_axes_summed).doc("Axes of a that are summed over.");
    schema.field("b_axes_summed", &TensordotParams::b_axes_summed)
        .doc("Axes of b that are contracted with them, in the same order.");
  }
};

struct TensordotIntParams {
  int32_t axes;
  static void describe(ParamSchema<TensordotIntParams>& schema) {
    schema.field("axes", &TensordotIntParams::axes)
        .at_least(0)
        .doc("Number of last axes of a and first axes of b that are summed over.");
  }
};

std::vector<int> normalized(const Tuple& axes, int ndim, const char* name) {
  std::vector<int> result;
  for (const int64_t axis : axes) {
    const int at = normalize_axis(axis, ndim, name);
    if (std::find(result.begin(), result.end(), at) != result.end())
      throw ParamError({.input = name, .expected = "axes that differ", .given = axes.str()});
    result.push_back(at);
  }
  return result;
}

// An operand as a matrix: its kept axes and its summed axes.
struct Folded {
  Tuple kept = Tuple::scalar();  // axes
  Shape kept_shape = Shape::scalar();
  int64_t summed = 1;

  Folded(const Shape& shape, const std::vector<int>& axes) {
    for (int i = 0; i < shape.ndim(); ++i) {
      if (std::find(axes.begin(), axes.end(), i) != axes.end()) continue;
      kept.push_back(i);
      kept_shape.push_back(shape[i]);
    }
    for (const int axis : axes) summed *= shape[axis];
  }
};

Value transposed(const Value& a, const Tuple& order) {
  for (int i = 0; i < order.ndim(); ++i)
    if (order[i] != i) return transpose(a, order);
  return a;
}

Value contracted(const Value& a, const Value& b, const std::vector<int>& a_axes, const std::vector<int>& b_axes) {
  const Shape a_shape = spec_of(a).shape, b_shape = spec_of(b).shape;
  bool fits = a_axes.size() == b_axes.size();
  for (size_t i = 0; fits && i < a_axes.size(); ++i) fits = a_shape[a_axes[i]] == b_shape[b_axes[i]];
  if (!fits)
    throw ShapeError({.input = "b",
                      .expected = "axes " + axes_text(b_axes) + " of the sizes of axes " + axes_text(a_axes) +
                                  " of a, which is " + a_shape.str(),
                      .given = "shape " + b_shape.str()});
  const Folded left(a_shape, a_axes), right(b_shape, b_axes);
  Tuple a_order = left.kept, b_order = Tuple::scalar();
  for (const int axis : a_axes) a_order.push_back(axis);
  for (const int axis : b_axes) b_order.push_back(axis);
  for (const int64_t axis : right.kept) b_order.push_back(axis);
  const Value rows = literal_reshape(transposed(a, a_order), Shape{left.kept_shape.size(), left.summed});
  const Value columns = literal_reshape(transposed(b, b_order), Shape{right.summed, right.kept_shape.size()});
  Shape out = left.kept_shape;
  for (const int64_t size : right.kept_shape) out.push_back(size);
  return literal_reshape(call(kDot, {rows, columns}), out);
}

Values contract(const Values& in, const std::vector<int>& a_axes, const std::vector<int>& b_axes) {
  const DType dtype = promoted(in), inner = arithmetic(dtype);
  return {cast(contracted(cast(in[0], inner), cast(in[1], inner), a_axes, b_axes), dtype)};
}

Values tensordot_rule(const TensordotParams& p, const Values& in) {
  return contract(in, normalized(p.a_axes_summed, spec_of(in[0]).shape.ndim(), "a_axes_summed"),
                  normalized(p.b_axes_summed, spec_of(in[1]).shape.ndim(), "b_axes_summed"));
}

Values tensordot_int_rule(const TensordotIntParams& p, const Values& in) {
  const int a_ndim = spec_of(in[0]).shape.ndim(), b_ndim = spec_of(in[1]).shape.ndim();
  if (p.axes > std::min(a_ndim, b_ndim))
    throw ParamError({.input = "axes",
                      .expected = "at most " + std::to_string(std::min(a_ndim, b_ndim)) + " axes",
                      .given = std::to_string(p.axes)});
  std::vector<int> a_axes, b_axes;
  for (int i = 0; i < p.axes; ++i) {
    a_axes.push_back(a_ndim - p.axes + i);
    b_axes.push_back(i);
  }
  return contract(in, a_axes, b_axes);
}

// ------------------------------------------------------------------------------------------- trace
struct TraceParams {
  int32_t offset, axis1, axis2;
  static void describe(ParamSchema<TraceParams>& schema) {
    schema.field("offset", &TraceParams::offset).default_value(0).doc("Offset of the diagonal above the main one.");
    schema.field("axis1", &TraceParams::axis1).default_value(0).doc("Axis of the rows.");
    schema.field("axis2", &TraceParams::axis2).default_value(1).doc("Axis of the columns.");
  }
};

Values trace_rule(const TraceParams& p, const Values& in) {
  const Shape shape = spec_of(in[0]).shape;
  const DType from = dtype_of(in[0]), dtype = from == DType::kBool ? DType::kInt64 : from;
  if (shape.ndim() < 2)
    throw ShapeError({.input = "data", .expected = "at least two axes", .given = "shape " + shape.str()});
  const int rows = normalize_axis(p.axis1, shape.ndim(), "axis1"),
            columns = normalize_axis(p.axis2, shape.ndim(), "axis2");
  if (rows == columns)
    throw ParamError({.input = "axis2", .expected = "another axis than axis1", .given = std::to_string(p.axis2)});
  const int64_t offset = p.offset;
  const int64_t length =
      std::min(shape[rows] + std::min<int64_t>(offset, 0), shape[columns] - std::max<int64_t>(offset, 0));
  if (length <= 0 || shape.size() == 0)  // the sum of no elements; diag does not support an empty diagonal
    return {call(kSum, {slice_axis(cast(in[0], dtype), rows, 0, 0)}, {{"axis", AttrValue(Tuple({rows, columns}))}})};
  const Value diagonal = call(kDiag, {cast(in[0], dtype)}, {{"k", p.offset}, {"axis1", rows}, {"axis2", columns}});
  return {call(kSum, {diagonal}, {{"axis", AttrValue(Tuple({-1}))}})};
}

// ------------------------------------------------------------------------------------------- kron
Shape with_ones(const Shape& shape, int ndim, bool ones_first) {
  Shape result = Shape::scalar();
  for (int i = 0; i < ndim; ++i) {
    const int at = i - ndim + shape.ndim();
    const int64_t size = at < 0 ? 1 : shape[at];
    result.push_back(ones_first ? 1 : size);
    result.push_back(ones_first ? size : 1);
  }
  return result;
}

Values kron_rule(const NoParams&, const Values& in) {
  const DType dtype = promoted(in), inner = arithmetic(dtype);
  const Value a = cast(in[0], inner), b = cast(in[1], inner);
  const int ndim = std::max(spec_of(a).shape.ndim(), spec_of(b).shape.ndim());
  const Value left = literal_reshape(a, with_ones(spec_of(a).shape, ndim, false));
  const Value right = literal_reshape(b, with_ones(spec_of(b).shape, ndim, true));
  const Value product = call(kMul, {left, right});
  const Shape pairs = spec_of(product).shape;
  Shape out = Shape::scalar();
  for (int i = 0; i < ndim; ++i) out.push_back(pairs[2 * i] * pairs[2 * i + 1]);
  return {cast(literal_reshape(product, out), dtype)};
}

// ------------------------------------------------------------------------------------------- cross
struct CrossParams {
  int32_t axisa, axisb, axisc;
  std::optional<int32_t> axis;
  static void describe(ParamSchema<CrossParams>& schema) {
    schema.field("axisa", &CrossParams::axisa).default_value(-1).doc("Axis of a with the vectors.");
    schema.field("axisb", &CrossParams::axisb).default_value(-1).doc("Axis of b with the vectors.");
    schema.field("axisc", &CrossParams::axisc).default_value(-1).doc("Axis of the result with the vectors.");
    schema.field("axis", &CrossParams::axis).none_by_default().doc("Replaces all three axes.");
  }
};

Value with_axis_moved(const Value& a, int from, int to) {
  if (from == to) return a;
  Tuple order = Tuple::scalar();
  for (int i = 0; i < spec_of(a).shape.ndim(); ++i)
    if (i != from) order.push_back(i);
  Tuple moved = Tuple::scalar();
  for (int i = 0, next = 0; i <= order.ndim(); ++i) moved.push_back(i == to ? from : order[next++]);
  return transpose(a, moved);
}

// The components of the vectors, each with an axis of size 1 at the end; the third is null for vectors of 2 elements.
std::vector<Value> elements(const Value& a, int64_t axis, const char* name) {
  const Shape shape = spec_of(a).shape;
  if (shape.ndim() == 0) throw ShapeError({.input = name, .expected = "at least one axis", .given = "a scalar"});
  const int at = normalize_axis(axis, shape.ndim(), name), last = shape.ndim() - 1;
  if (shape[at] != 2 && shape[at] != 3)
    throw ShapeError({.input = name,
                      .expected = "vectors of 2 or 3 elements along axis " + std::to_string(at),
                      .given = "shape " + shape.str()});
  const Value moved = with_axis_moved(a, at, last);
  std::vector<Value> result(3);
  for (int64_t i = 0; i < shape[at]; ++i) result[static_cast<size_t>(i)] = slice_axis(moved, last, i, i + 1);
  return result;
}

Values cross_rule(const CrossParams& p, const Values& in) {
  const DType dtype = promoted(in), inner = arithmetic(dtype);
  const std::vector<Value> a = elements(cast(in[0], inner), p.axis.value_or(p.axisa), "a"),
                           b = elements(cast(in[1], inner), p.axis.value_or(p.axisb), "b");
  const Value along_z = a[0] * b[1] - a[1] * b[0];
  Shape stack = spec_of(along_z).shape;
  if (!a[2] && !b[2]) {
    Shape without = Shape::scalar();
    for (int i = 0; i + 1 < stack.ndim(); ++i) without.push_back(stack[i]);
    return {cast(literal_reshape(along_z, without), dtype)};
  }
  const Value result = concat({a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], along_z}, stack.ndim() - 1);
  const int axis = normalize_axis(p.axis.value_or(p.axisc), stack.ndim(), "axisc");
  return {cast(with_axis_moved(result, stack.ndim() - 1, axis), dtype)};
}

}  // namespace

void register_numpy_contractions(OpRegistry& ops) {
  ops.declare<TensordotParams>("_npi_tensordot")
      .doc("Sums of products over pairs of axes.")
      .input("a", "array of any shape")
      .input("b", "array whose summed axes have the sizes of the summed axes of a")
      .output("out", "the remaining axes of a, then those of b, in the common dtype")
      .compose(tensordot_rule)
      .sample({{2, 3, 4}, {4, 5, 2}}, {{"a_axes_summed", "(0, -1)"}, {"b_axes_summed", "(2, 0)"}})
      .sample({{2, 3}, {3, 2}}, {{"a_axes_summed", "(1,)"}, {"b_axes_summed", "(0,)"}});
  ops.declare<TensordotIntParams>("_npi_tensordot_int_axes")
      .doc("Sums of products over the last axes of a and the first axes of b.")
      .input("a", "array of any shape")
      .input("b", "array whose first axes have the sizes of the last axes of a")
      .output("out", "the remaining axes of a, then those of b, in the common dtype")
      .compose(tensordot_int_rule)
      .sample({{2, 3, 4}, {3, 4, 2}}, {{"axes", "2"}})
      .sample({{2}, {3}}, {{"axes", "0"}});
  ops.declare<TraceParams>("_np_trace")
      .doc("Sums along diagonals. Bools are counted.")
      .input("data", "array of at least two axes")
      .names_its_input()
      .output("out", "the axes except axis1 and axis2")
      .compose(trace_rule)
      .sample({{3, 4}})
      .sample({{3, 2, 4}}, {{"offset", "1"}, {"axis1", "0"}, {"axis2", "-1"}})
      .sample({{2, 2}}, {{"offset", "-1"}});
  ops.declare("_npi_kron")
      .doc("Kronecker product: every element of a times b.")
      .input("a", "array of any shape")
      .input("b", "array of any shape")
      .output("out", "the products of the sizes, aligned at the last axis, in the common dtype")
      .compose(kron_rule)
      .sample({{2, 3}, {3, 2}})
      .sample({{2}, {2, 2}});
  ops.declare<CrossParams>("_npi_cross")
      .doc("Cross products of vectors of 2 or 3 elements; two of 2 elements give a number.")
      .input("a", "array with vectors along axisa")
      .input("b", "array with vectors along axisb; the other axes broadcast")
      .output("out", "vectors along axisc")
      .compose(cross_rule)
      .sample({{2, 3}, {3}})
      .sample({{3, 2}, {2, 3}}, {{"axisa", "0"}, {"axisc", "0"}})
      .sample({{2, 2}, {2, 2}})
      .sample({{4, 2}, {4, 3}});
}

}  // namespace hybridnet::ops
