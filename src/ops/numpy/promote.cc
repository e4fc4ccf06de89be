#include "ops/numpy/promote.h"

#include <algorithm>

namespace hybridnet::ops {
namespace {

const OpRef kNpReshape{"_np_reshape"}, kNpZeros{"_npi_zeros"}, kBroadcastAxis{"broadcast_axis"};

bool is_small_pair(DType a, DType b) { return a == DType::kInt8 && b == DType::kUInt8; }

DType common_float(DType a, DType b) {
  if (a == DType::kFloat64 || b == DType::kFloat64) return DType::kFloat64;
  return DType::kFloat32;  // neither of float16 and bfloat16 can represent the other; float32 represents both
}

}  // namespace

DType promoted(DType a, DType b) {
  if (a == b || b == DType::kBool) return a;
  if (a == DType::kBool) return b;
  if (is_floating(a) && is_floating(b)) return common_float(a, b);
  if (is_floating(a)) return a;
  if (is_floating(b)) return b;
  if (is_small_pair(a, b) || is_small_pair(b, a)) return DType::kInt32;
  return dtype_size(a) > dtype_size(b) ? a : b;
}

DType promoted(const Values& values) {
  DType result = dtype_of(values.at(0));
  for (const Value& v : values) result = promoted(result, dtype_of(v));
  return result;
}

Values in_common_dtype(const Values& values) {
  const DType dtype = promoted(values);
  Values result;
  for (const Value& v : values) result.push_back(cast(v, dtype));
  return result;
}

bool all_equal(std::span<const DType> dtypes) {
  return std::all_of(dtypes.begin(), dtypes.end(), [&](DType d) { return d == dtypes[0]; });
}

Value literal_reshape(const Value& a, const Shape& shape) {
  return spec_of(a).shape == shape ? a : call(kNpReshape, {a}, {{"newshape", AttrValue(shape)}});
}

Value constant(double value, DType dtype) {
  const Value zero = call(kNpZeros, std::initializer_list<Value>{},
                          {{"shape", AttrValue(Shape::scalar())}, {"dtype", dtype_name(arithmetic(dtype))}});
  return cast(value == 0 ? zero : zero + value, dtype);
}

// broadcast_axis cannot repeat 0 times: an axis whose new size is 0 is sliced instead.
Value repeated(Value array, const Shape& to) {
  for (int lead = to.ndim() - spec_of(array).shape.ndim(); lead > 0; --lead) array = expand_dims(array, 0);
  Tuple axes = Tuple::scalar(), sizes = Tuple::scalar();
  const Shape from = spec_of(array).shape;
  for (int i = 0; i < to.ndim(); ++i) {
    if (from[i] == to[i]) continue;
    if (to[i] == 0) {
      array = slice_axis(array, i, 0, 0);
    } else {
      axes.push_back(i);
      sizes.push_back(to[i]);
    }
  }
  if (axes.ndim() == 0) return array;
  return call(kBroadcastAxis, {array}, {{"axis", AttrValue(axes)}, {"size", AttrValue(sizes)}});
}

Shape common_shape(const Values& values, std::initializer_list<const char*> names) {
  Shape common = Shape::scalar();
  for (size_t k = 0; k < values.size(); ++k) {
    const Shape own = spec_of(values[k]).shape, before = common;
    const int ndim = std::max(common.ndim(), own.ndim());
    common = Shape::scalar();
    for (int i = 0; i < ndim; ++i) {
      const int ci = i - (ndim - before.ndim()), oi = i - (ndim - own.ndim());
      const int64_t a = ci < 0 ? 1 : before[ci], b = oi < 0 ? 1 : own[oi];
      if (a != b && a != 1 && b != 1)
        throw ShapeError({.input = names.begin()[k],
                          .expected = "a shape that broadcasts with " + before.str(),
                          .given = own.str(),
                          .because = "sizes " + std::to_string(a) + " and " + std::to_string(b) + " meet"});
      common.push_back(a == 1 ? b : a);
    }
  }
  return common;
}

Value literal_zeros(const Shape& shape, DType dtype) {
  return call(kNpZeros, Values{}, {{"shape", AttrValue(shape)}, {"dtype", dtype_name(dtype)}});
}

Value without_axes_left(const Value& a, int expected_ndim) {
  return expected_ndim == 0 ? literal_reshape(a, Shape::scalar()) : a;
}

}  // namespace hybridnet::ops
