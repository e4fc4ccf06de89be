// Arrays behind handles, and what functions that take or give several of them share.
#pragma once

#include <span>
#include <vector>

#include "c_api/handles.h"
#include "hybridnet/c_api.h"
#include "hybridnet/ndarray.h"

namespace hybridnet::c_api {

struct ArrayHandle final : Handled {
  static constexpr HandleKind kKind = HandleKind::kArray;
  explicit ArrayHandle(NDArray a) : array(std::move(a)) {}
  const NDArray array;
};

HnArray give_array(NDArray array);
// The array of a handle. Throws ValueError naming function and argument.
NDArray array_of(HnArray handle, const char* function, const char* argument);
// The arrays of `count` handles; with_null: NULL handles are null arrays.
std::vector<NDArray> arrays_of(size_t count, const HnArray* handles, const char* function, const char* argument,
                               bool with_null = false);
// A gradient for the array: zeros, dense ones of which take no memory before they are used.
NDArray zero_gradient(const NDArray& array, StorageType storage = StorageType::kDefault);
// Gives out all arrays or none.
void give_arrays(std::span<const NDArray> arrays, HnArray* out);

// What c_api.h says of a tensor, checked. ndim below 0: nothing is known, where `partial` allows that.
Shape shape_of(const int64_t* sizes, int ndim, const char* function, const char* argument);
DType dtype_of(int code, const char* function, const char* argument);
// What is not known is -1: ndim, sizes, dtype.
void give_spec(const TensorSpec& spec, HnTensorSpec* out);

}  // namespace hybridnet::c_api
