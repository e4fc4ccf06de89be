// Dtypes of NumPy's interface, and operators for composed rules in addition to those of ops/emit.h.
#pragma once

#include "ops/emit.h"

namespace hybridnet::ops {

// The dtype of integers in functions of real numbers, true division and means.
inline constexpr DType kDefaultFloat = DType::kFloat32;

// The common dtype of two arrays: for integers the one that holds both (int32 where NumPy uses int16), for floats
// the wider one; a float and an integer give the float, which follows MXNet 1.9.1.
DType promoted(DType a, DType b);
DType promoted(const Values& values);
Values in_common_dtype(const Values& values);

inline DType dtype_of(const Value& v) { return spec_of(v).dtype; }
inline DType floating(DType dtype) { return is_floating(dtype) ? dtype : kDefaultFloat; }
// Bool arithmetic is computed in int8, and its results are converted back.
inline DType arithmetic(DType dtype) { return dtype == DType::kBool ? DType::kInt8 : dtype; }

bool all_equal(std::span<const DType> dtypes);

// The same elements in another shape, which is taken literally: 0 is a size of 0, () a scalar, -1 the remaining size.
Value literal_reshape(const Value& a, const Shape& shape);

// A scalar array.
Value constant(double value, DType dtype);

// `array` broadcast to a shape: new axes in front, sizes of 1 repeated.
Value repeated(Value array, const Shape& to);

// The shape that all arrays broadcast to. Throws a ShapeError that names the input.
Shape common_shape(const Values& values, std::initializer_list<const char*> names);

// Zeros of a shape, which is taken literally.
Value literal_zeros(const Shape& shape, DType dtype);

// Without NumPy's shapes, classic operators return (1,) if no axis is left; this converts it to ().
Value without_axes_left(const Value& a, int expected_ndim);

}  // namespace hybridnet::ops
