// Functions over Value with which gradient rules describe their computation. They emit operators through the current
// Emitter, which adds graph nodes or runs at once. A null Value is a symbolic zero: products with it are null, sums
// skip it.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "hybridnet/op.h"

namespace hybridnet::ops {

using Attrs = std::initializer_list<std::pair<const char*, AttrValue>>;

// Emits one op; returns its first output, or all of them. Every input must be non-null.
Value call(const OpRef& op, std::initializer_list<Value> inputs, Attrs attrs = {});
Value call(const OpRef& op, const Values& inputs, Attrs attrs = {});
Values call_all(const OpRef& op, const Values& inputs, Attrs attrs = {});
// The same with a ready parameter struct (boxed by ParamSchema<P>::box).
Value call(const OpRef& op, std::initializer_list<Value> inputs, ParamsPtr params);
Values call_all(const OpRef& op, const Values& inputs, ParamsPtr params);

const TensorSpec spec_of(const Value& v);

// Elementwise over equal or broadcastable shapes.
Value operator+(const Value& a, const Value& b);
Value operator-(const Value& a, const Value& b);
Value operator*(const Value& a, const Value& b);
Value operator/(const Value& a, const Value& b);
Value operator-(const Value& a);
Value operator+(const Value& a, double s);
Value operator-(const Value& a, double s);
Value operator*(const Value& a, double s);
Value operator/(const Value& a, double s);
inline Value operator+(double s, const Value& a) { return a + s; }
inline Value operator*(double s, const Value& a) { return a * s; }
Value operator-(double s, const Value& a);
Value operator/(double s, const Value& a);
Value add_all(const Values& terms);  // skips nulls; null if all terms are null

Value greater(const Value& a, double s);  // 1 or 0 in a's dtype
Value lesser(const Value& a, double s);
Value where(const Value& condition, const Value& x, const Value& y);
Value zeros_like(const Value& a);
Value ones_like(const Value& a);
Value zeros(const Shape& shape, DType dtype);
Value full(const Shape& shape, DType dtype, double value);
Value cast(const Value& a, DType dtype);
Value stop_gradient(const Value& a);

Value reshape(const Value& a, const Shape& shape);
Value expand_dims(const Value& a, int axis);
Value transpose(const Value& a, const Tuple& axes);
Value broadcast_to(const Value& a, const Shape& shape);
// Sums over axes; keepdims.
Value sum(const Value& a, const Tuple& axes, bool keepdims);
// Sums a broadcast gradient to the shape of its operand.
Value sum_to(const Value& a, const Shape& shape);
Value dot(const Value& a, const Value& b, bool transpose_a, bool transpose_b);
Value batch_dot(const Value& a, const Value& b, bool transpose_a, bool transpose_b);
Value slice_axis(const Value& a, int axis, int64_t begin, int64_t end);
Value concat(const Values& parts, int axis);

}  // namespace hybridnet::ops
