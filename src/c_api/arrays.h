// Array handles, and helpers for C functions that take or return several of them.
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
// Returns the array of a handle. Throws ValueError naming function and argument.
NDArray array_of(HnArray handle, const char* function, const char* argument);
// Returns the arrays of `count` handles; with_null: NULL handles give null arrays.
std::vector<NDArray> arrays_of(size_t count, const HnArray* handles, const char* function, const char* argument,
                               bool with_null = false);
// Returns a gradient array of zeros for `array`. A dense one takes no memory before its first use.
NDArray zero_gradient(const NDArray& array, StorageType storage = StorageType::kDefault);
// Writes handles of all arrays to `out`; after an error it writes none.
void give_arrays(std::span<const NDArray> arrays, HnArray* out);

// Check and convert the shape and the dtype code of a tensor in c_api.h. They throw ShapeError and DTypeError.
Shape shape_of(const int64_t* sizes, int ndim, const char* function, const char* argument);
DType dtype_of(int code, const char* function, const char* argument);
// Writes a spec to `out`. Unknown ndim, sizes and dtype are -1.
void give_spec(const TensorSpec& spec, HnTensorSpec* out);

}  // namespace hybridnet::c_api
