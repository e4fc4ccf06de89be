// Dtypes of NumPy's interface, and the operators that composed rules call beside those of ops/emit.h.
#pragma once

#include "ops/emit.h"

namespace hybridnet::ops {

// What whole numbers become in functions of real numbers, true division and means.
inline constexpr DType kDefaultFloat = DType::kFloat32;

// The dtype in which two arrays meet: among whole numbers the one that holds both (int32 where NumPy would take int16),
// among floats the wider; a float wins over whole numbers, as in MXNet 1.9.1.
DType promoted(DType a, DType b);
DType promoted(const Values& values);
Values in_common_dtype(const Values& values);

inline DType dtype_of(const Value& v) { return spec_of(v).dtype; }
inline DType floating(DType dtype) { return is_floating(dtype) ? dtype : kDefaultFloat; }
// Bool arithmetic runs in int8 and its results are turned back.
inline DType arithmetic(DType dtype) { return dtype == DType::kBool ? DType::kInt8 : dtype; }

bool all_equal(std::span<const DType> dtypes);

// The same elements under another shape, taken literally: 0 is a size of 0, () a scalar. -1: what is left.
Value literal_reshape(const Value& a, const Shape& shape);

// A scalar array of one number.
Value constant(double value, DType dtype);

// `array` repeated to a shape that its own broadcasts to: new axes in front, sizes of 1 repeated.
Value repeated(Value array, const Shape& to);

// The shape that all broadcast to. Throws ShapeError naming the input.
Shape common_shape(const Values& values, std::initializer_list<const char*> names);

// Zeros of a shape that is taken literally too.
Value literal_zeros(const Shape& shape, DType dtype);

// Without NumPy's shapes classic operators give (1,) where nothing is left; this gives ().
Value without_axes_left(const Value& a, int expected_ndim);

}  // namespace hybridnet::ops
