// Products of NumPy's interface: dot and matmul for arrays of any rank.
#include <algorithm>

#include "hybridnet/declare.h"
#include "ops/numpy/promote.h"

namespace hybridnet::ops {
namespace {

const OpRef kDot{"dot"}, kBatchDot{"batch_dot"}, kMul{"broadcast_mul"};

// Moves the contracted axis of b to the front.
Value contracted_first(const Value& b) {
  const int ndim = spec_of(b).shape.ndim();
  if (ndim <= 2) return b;
  Tuple axes = Tuple::scalar();
  axes.push_back(ndim - 2);
  for (int i = 0; i < ndim; ++i)
    if (i != ndim - 2) axes.push_back(i);
  return transpose(b, axes);
}

// Sum over the last axis of a and the second-to-last (or only) axis of b.
Value contract(const Value& a, const Value& b) {
  const int left = spec_of(a).shape.ndim() - 1 + std::max(spec_of(b).shape.ndim() - 1, 0);
  return without_axes_left(call(kDot, {a, contracted_first(b)}), left);
}

Values dot_rule(const NoParams&, const Values& in) {
  const DType dtype = promoted(in), inner = arithmetic(dtype);
  const Value a = cast(in[0], inner), b = cast(in[1], inner);
  const bool scalar = spec_of(a).shape.ndim() == 0 || spec_of(b).shape.ndim() == 0;
  return {cast(scalar ? call(kMul, {a, b}) : contract(a, b), dtype)};
}

// The broadcast shape of the axes before the matrices, for two arrays of the same rank.
Shape broadcast_stacks(const Shape& a, const Shape& b) {
  Shape result = Shape::scalar();
  for (int i = 0; i + 2 < a.ndim(); ++i) {
    if (a[i] != b[i] && a[i] != 1 && b[i] != 1)
      throw ShapeError({.input = "b",
                        .expected = "leading axes that broadcast with those of " + a.str(),
                        .given = b.str(),
                        .because = "sizes " + std::to_string(a[i]) + " and " + std::to_string(b[i]) + " meet"});
    result.push_back(a[i] == 1 ? b[i] : a[i]);
  }
  return result;
}

Value with_rank(Value a, int ndim) {
  while (spec_of(a).shape.ndim() < ndim) a = expand_dims(a, 0);
  return a;
}

// The matrices of a, repeated to the shape of the stack.
Value stacked(const Value& a, Shape stack) {
  const Shape& shape = spec_of(a).shape;
  for (int i = shape.ndim() - 2; i < shape.ndim(); ++i) stack.push_back(shape[i]);
  return broadcast_to(a, stack);
}

void require_axes(const Values& in) {
  for (size_t i = 0; i < in.size(); ++i)
    if (spec_of(in[i]).shape.ndim() == 0)
      throw ShapeError({.input = i == 0 ? "a" : "b",
                        .expected = "at least one axis",
                        .given = "a scalar",
                        .fix = "multiply scalars with *"});
}

Values matmul_rule(const NoParams&, const Values& in) {
  require_axes(in);
  const DType dtype = promoted(in), inner = arithmetic(dtype);
  Value a = cast(in[0], inner), b = cast(in[1], inner);
  const int a_ndim = spec_of(a).shape.ndim(), b_ndim = spec_of(b).shape.ndim();
  if (b_ndim <= 2 || a_ndim == 1) return {cast(contract(a, b), dtype)};
  const int ndim = std::max(a_ndim, b_ndim);
  a = with_rank(a, ndim);
  b = with_rank(b, ndim);
  const Shape stack = broadcast_stacks(spec_of(a).shape, spec_of(b).shape);
  return {cast(call(kBatchDot, {stacked(a, stack), stacked(b, stack)}), dtype)};
}

}  // namespace

void register_numpy_products(OpRegistry& ops) {
  ops.declare("_np_dot")
      .doc(
          "Sum of products over the last axis of a and the second-to-last (or only) axis of b; scalars are multiplied.")
      .input("a", "array of any shape")
      .input("b", "array of any shape")
      .output("out", "the remaining axes of a, then those of b, in the common dtype")
      .compose(dot_rule)
      .sample({{3, 4}, {4, 5}})
      .sample({Shape{4}, Shape{4}})
      .sample({{2, 3, 4}, {4}})
      .sample({{2, 3}, {2, 3, 4}})
      .sample({Shape::scalar(), Shape{2, 3}});
  ops.declare("_npi_matmul")
      .doc("Matrix products of two arrays; axes before the matrices broadcast, a vector is a row or a column.")
      .input("a", "vector, matrix or stack of matrices")
      .input("b", "vector, matrix or stack of matrices")
      .output("out", "stack of products, in the common dtype")
      .mxnet_name("out")
      .compose(matmul_rule)
      .sample({{3, 4}, {4, 5}})
      .sample({Shape{4}, Shape{4}})
      .sample({{2, 3, 4}, {4, 5}})
      .sample({{2, 1, 3, 4}, {5, 4, 2}})
      .sample({Shape{4}, Shape{2, 4, 3}})
      .sample({{2, 3, 4}, {4}});
}

}  // namespace hybridnet::ops
