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
// The same for both; throws ShapeError also for sizes that make 2^63 bytes or more.
TensorSpec spec_of(const int64_t* sizes, int ndim, int dtype, const char* function);
// Returns a new array with the values at `data` in memory of the CPU; null: zeros.
NDArray new_array(const TensorSpec& spec, Device device, const void* data);

// Returns the device of a type and an id of the C interface. Throws ValueError for other numbers; whether there is such
// a GPU is not looked up.
Device device_of(int type, int id, const char* function);
// Returns a copy on a device, recorded while the thread records. Throws UnsupportedError for arrays in sparse storage
// if the device is a GPU.
NDArray copied_to(const NDArray& array, Device device, const char* function);
// True if the device is that of the array; the memory of all CPU devices counts as one.
bool is_on(const NDArray& array, Device device);
// Throws UnsupportedError that names `function` if the array is on a GPU, where its memory cannot be shared.
void require_on_cpu(const NDArray& array, const char* function);
// Writes a spec to `out`. Unknown ndim, sizes and dtype are -1.
void give_spec(const TensorSpec& spec, HnTensorSpec* out);

}  // namespace hybridnet::c_api
