#include <algorithm>
#include <string>

#include "base/checked_size.h"
#include "hybridnet/base.h"
#include "hybridnet/error.h"

namespace hybridnet {
namespace {

[[noreturn]] void throw_too_many_dims(int64_t given) {
  throw ShapeError({.expected = "at most " + std::to_string(kMaxDims) + " dimensions",
                    .given = std::to_string(given),
                    .fix = "merge dimensions with reshape"});
}

}  // namespace

Shape::Shape(std::span<const int64_t> dims) {
  if (dims.size() > static_cast<size_t>(kMaxDims)) throw_too_many_dims(static_cast<int64_t>(dims.size()));
  ndim_ = static_cast<int32_t>(dims.size());
  for (int i = 0; i < ndim_; ++i) dims_[i] = dims[i];
}

Shape Shape::unknown(int ndim) {
  if (ndim > kMaxDims) throw_too_many_dims(ndim);
  Shape shape;
  shape.ndim_ = ndim < 0 ? kUnknownNdim : ndim;
  for (int i = 0; i < shape.ndim_; ++i) shape.dims_[i] = kUnknownDim;
  return shape;
}

bool Shape::known() const {
  if (ndim_ < 0) return false;
  for (int64_t dim : *this) {
    if (dim < 0) return false;
  }
  return true;
}

int64_t Shape::checked_size(int first, int last) const {
  int64_t product = 1;
  bool empty = false;
  for (int axis = first; axis < last; ++axis) {
    if (dims_[axis] == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(product, dims_[axis], &product) || product > kMaxElements) {
      throw ShapeError({.expected = "at most 2**56 elements, sizes of 0 left out", .given = "shape " + str()});
    }
  }
  return empty ? 0 : product;
}

bool Shape::is_possible_product() const {
  int64_t product = 1;
  return std::all_of(begin(), end(), [&](int64_t size) {
    return size <= 0 || (!__builtin_mul_overflow(product, size, &product) && product <= kMaxElements);
  });
}

void Shape::push_back(int64_t dim) {
  if (ndim_ < 0) ndim_ = 0;
  if (ndim_ == kMaxDims) throw_too_many_dims(kMaxDims + 1);
  dims_[ndim_++] = dim;
}

std::string Shape::str() const {
  if (ndim_ < 0) return "?";
  std::string text = "(";
  for (int i = 0; i < ndim_; ++i) {
    if (i > 0) text += ", ";
    text += dims_[i] < 0 ? "?" : std::to_string(dims_[i]);
  }
  text += ndim_ == 1 ? ",)" : ")";
  return text;
}

std::string TensorSpec::str() const {
  return std::string(dtype == DType::kUnknown ? "?" : dtype_name(dtype)) +
         (shape.rank_known() ? shape.str() : "(?...)");
}

}  // namespace hybridnet
