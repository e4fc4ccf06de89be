#include "c_api/arrays.h"

#include <cstdlib>
#include <cstring>

#include "c_api/status.h"
#include "hybridnet/imperative.h"
#include "hybridnet/sparse.h"
#include "ndarray/dlpack.h"
#include "ndarray/given_out.h"

namespace hybridnet::c_api {

HnArray give_array(NDArray array) {
  return static_cast<HnArray>(make_handle(std::make_unique<ArrayHandle>(std::move(array))));
}

NDArray array_of(HnArray handle, const char* function, const char* argument) {
  return Pinned<ArrayHandle>(handle, function, argument)->array;
}

std::vector<NDArray> arrays_of(size_t count, const HnArray* handles, const char* function, const char* argument,
                               bool with_null) {
  if (count > 0) require(handles, function, argument);
  std::vector<NDArray> arrays(count);
  for (size_t i = 0; i < count; ++i)
    if (handles[i] != nullptr || !with_null)
      arrays[i] = array_of(handles[i], function, (argument + ("[" + std::to_string(i) + "]")).c_str());
  return arrays;
}

void give_arrays(std::span<const NDArray> arrays, HnArray* out) {
  std::vector<HnArray> given;
  try {
    for (const NDArray& array : arrays) given.push_back(give_array(array));
  } catch (...) {
    for (HnArray handle : given) free_handle<ArrayHandle>(handle, "give_arrays");
    throw;
  }
  std::copy(given.begin(), given.end(), out);
}

Shape shape_of(const int64_t* sizes, int ndim, const char* function, const char* argument) {
  if (ndim < 0 || ndim > kMaxDims)
    throw ShapeError({.op = function,
                      .input = "ndim",
                      .expected = "0 to " + std::to_string(kMaxDims),
                      .given = std::to_string(ndim)});
  if (ndim > 0) require(sizes, function, argument);
  const Shape shape(std::span<const int64_t>(sizes, static_cast<size_t>(ndim)));
  for (const int64_t size : shape)
    if (size < 0)
      throw ShapeError({.op = function, .input = argument, .expected = "sizes of 0 or more", .given = shape.str()});
  return shape;
}

DType dtype_of(int code, const char* function, const char* argument) {
  if (!dtype_valid_code(code))
    throw DTypeError(
        {.op = function, .input = argument, .expected = "a code of HnDType", .given = std::to_string(code)});
  return static_cast<DType>(code);
}

NDArray zero_gradient(const NDArray& array, StorageType storage) {
  return storage == StorageType::kDefault ? NDArray::deferred_zeros(array.spec(), array.device())
                                          : sparse_zeros(storage, array.spec(), array.device());
}

void give_spec(const TensorSpec& spec, HnTensorSpec* out) {
  *out = {};
  out->ndim = spec.shape.ndim();
  out->dtype = static_cast<int>(spec.dtype);
  std::copy(spec.shape.begin(), spec.shape.end(), out->shape);
}

TensorSpec spec_of(const int64_t* sizes, int ndim, int dtype, const char* function) {
  const Shape shape = shape_of(sizes, ndim, function, "shape");
  const TensorSpec spec{shape, dtype_of(dtype, function, "dtype")};
  int64_t bytes = dtype_size(spec.dtype);
  for (const int64_t size : shape)
    if (__builtin_mul_overflow(bytes, size, &bytes))
      throw ShapeError(
          {.op = function, .input = "shape", .expected = "a total below 2^63 bytes", .given = shape.str()});
  return spec;
}

NDArray new_array(const TensorSpec& spec, Device device, const void* data) {
  if (!data && device.type == DeviceType::kGPU) return NDArray::deferred_zeros(spec, device);
  NDArray array = NDArray::empty(spec, device);
  if (array.bytes() == 0) return array;
  if (data)
    array.copy_from(data);
  else
    std::memset(array.data(), 0, static_cast<size_t>(array.bytes()));
  return array;
}

namespace {

void check_bytes(const NDArray& array, size_t bytes, const void* memory, const char* function, const char* argument) {
  if (bytes != static_cast<size_t>(array.bytes()))
    throw ValueError({.op = function,
                      .input = "bytes",
                      .expected = std::to_string(array.bytes()),
                      .given = std::to_string(bytes),
                      .because = "the array is " + array.spec().str()});
  if (bytes > 0) require(memory, function, argument);
}

void check_dense(const NDArray& array, const std::string& function) {
  if (array.is_sparse())
    throw UnsupportedError({.op = function,
                            .input = "array",
                            .expected = "a dense array",
                            .given = std::string("one in storage '") + storage_type_name(array.storage_type()) + "'",
                            .fix = "read its parts by hn_array_part, or convert it by hn_array_cast_storage"});
}

const OpRef kCopy{"_copy"};

void give_loaded(const LoadedArrays& loaded, const std::string& what, size_t* count, HnArray** arrays,
                 const char*** names) {
  const size_t n = loaded.arrays.size();
  for (size_t i = 0; i < n; ++i)
    if (!loaded.arrays[i])
      throw FormatError({.input = what, .message = "array " + std::to_string(i) + " has no value"});
  auto handles = std::make_unique<HnArray[]>(n);
  std::unique_ptr<const char*[]> texts;
  if (loaded.named) texts = std::make_unique<const char*[]>(n);
  give_arrays(loaded.arrays, handles.get());
  for (size_t i = 0; texts && i < n; ++i) texts[i] = strdup(loaded.names[i].c_str());
  *count = n;
  *arrays = handles.release();
  *names = texts.release();
}

}  // namespace
}  // namespace hybridnet::c_api

using namespace hybridnet;  // the functions below are C: they have no namespace
using c_api::array_of;
using c_api::give_array;
using c_api::guarded;
using c_api::require;

int hn_array_create(const int64_t* shape, int ndim, int dtype, const void* data, HnArray* out) {
  return guarded([&] {
    require(out, "hn_array_create", "out");
    *out = give_array(c_api::new_array(c_api::spec_of(shape, ndim, dtype, "hn_array_create"), {}, data));
  });
}

int hn_array_wrap(void* data, const int64_t* shape, int ndim, int dtype, void (*release)(void*), void* context,
                  HnArray* out) {
  return guarded([&] {
    require(out, "hn_array_wrap", "out");
    const TensorSpec spec = c_api::spec_of(shape, ndim, dtype, "hn_array_wrap");
    if (spec.bytes() > 0) require(data, "hn_array_wrap", "data");
    if (reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(dtype_size(spec.dtype)) != 0)
      throw ValueError({.op = "hn_array_wrap",
                        .input = "data",
                        .expected = "an address that is a multiple of " + std::to_string(dtype_size(spec.dtype)),
                        .because = "elements are " + std::string(dtype_name(spec.dtype))});
    // The last view releases the memory; it is not released here if making the handle fails.
    struct Owner {
      void (*release)(void*);
      void* context;
      bool taken = false;
      ~Owner() {
        if (taken && release) release(context);
      }
    };
    auto owner = std::make_shared<Owner>(release, context);
    *out = give_array(NDArray::from_memory(data, spec, [owner] { (void)owner; }));
    owner->taken = true;
  });
}

int hn_dtype_size(int dtype, size_t* out) {
  return guarded([&] {
    const DType given = c_api::dtype_of(dtype, "hn_dtype_size", "dtype");
    require(out, "hn_dtype_size", "out");
    *out = static_cast<size_t>(dtype_size(given));
  });
}

const char* hn_dtype_name(int dtype) {
  return dtype_valid_code(dtype) ? dtype_name(static_cast<DType>(dtype)) : nullptr;
}

int hn_array_free(HnArray array) {
  return guarded([&] { c_api::free_handle<c_api::ArrayHandle>(array, "hn_array_free"); });
}

int hn_array_share(HnArray array, HnArray* out) {
  return guarded([&] {
    const NDArray given = array_of(array, "hn_array_share", "array");
    require(out, "hn_array_share", "out");
    *out = give_array(given);
  });
}

int hn_array_copy(HnArray array, HnArray* out) {
  return guarded([&] {
    const NDArray given = array_of(array, "hn_array_copy", "array");
    require(out, "hn_array_copy", "out");
    *out = give_array(invoke_one(c_api::kCopy.op(), c_api::kCopy.op().default_params, {&given, 1}));
  });
}

int hn_array_ndim(HnArray array, int* out) {
  return guarded([&] {
    const NDArray given = array_of(array, "hn_array_ndim", "array");
    require(out, "hn_array_ndim", "out");
    *out = given.ndim();
  });
}

int hn_array_shape(HnArray array, const int64_t** out) {
  return guarded([&] {
    const NDArray given = array_of(array, "hn_array_shape", "array");
    require(out, "hn_array_shape", "out");
    *out = given.shape().begin();
  });
}

int hn_array_dtype(HnArray array, int* out) {
  return guarded([&] {
    const NDArray given = array_of(array, "hn_array_dtype", "array");
    require(out, "hn_array_dtype", "out");
    *out = static_cast<int>(given.dtype());
  });
}

int hn_array_size(HnArray array, int64_t* out) {
  return guarded([&] {
    const NDArray given = array_of(array, "hn_array_size", "array");
    require(out, "hn_array_size", "out");
    *out = given.size();
  });
}

int hn_array_device(HnArray array, int* type, int* id) {
  return guarded([&] {
    const Device device = array_of(array, "hn_array_device", "array").device();
    require(type, "hn_array_device", "type");
    require(id, "hn_array_device", "id");
    *type = device.type == DeviceType::kGPU ? HN_GPU : HN_CPU;  // pinned and shared memory are the CPU's, too
    *id = device.id;
  });
}

int hn_array_storage(HnArray array, const char** out) {
  return guarded([&] {
    const NDArray given = array_of(array, "hn_array_storage", "array");
    require(out, "hn_array_storage", "out");
    *out = storage_type_name(given.storage_type());
  });
}

int hn_array_wait(HnArray array) {
  return guarded([&] {
    const NDArray given = array_of(array, "hn_array_wait", "array");
    given.wait_for_values();
    if (given.is_sparse()) checked_parts(given).data.wait_for_values();
  });
}

int hn_array_data(HnArray array, const void** out) {
  return guarded([&] {
    const NDArray given = array_of(array, "hn_array_data", "array");
    require(out, "hn_array_data", "out");
    c_api::check_dense(given, "hn_array_data");
    c_api::require_on_cpu(given, "hn_array_data");
    given.wait_to_read();
    give_out(given);
    *out = given.data();
  });
}

int hn_array_copy_to(HnArray array, void* target, size_t bytes) {
  return guarded([&] {
    const NDArray given = array_of(array, "hn_array_copy_to", "array");
    c_api::check_bytes(given, bytes, target, "hn_array_copy_to", "target");
    to_dense(given).copy_to(target);
  });
}

int hn_array_copy_from(HnArray array, const void* source, size_t bytes) {
  return guarded([&] {
    const NDArray given = array_of(array, "hn_array_copy_from", "array");
    c_api::check_bytes(given, bytes, source, "hn_array_copy_from", "source");
    check_recorded_write(given);
    note_overwrite(given);
    if (!given.is_sparse()) return given.copy_from(source);
    const NDArray dense = NDArray::empty(given.spec());
    dense.copy_from(source);
    assign_sparse(given, dense);
  });
}

int hn_array_reshape(HnArray array, const int64_t* shape, int ndim, HnArray* out) {
  return guarded([&] {
    const NDArray given = array_of(array, "hn_array_reshape", "array");
    require(out, "hn_array_reshape", "out");
    const Shape wanted = c_api::shape_of(shape, ndim, "hn_array_reshape", "shape");
    c_api::check_dense(given, "hn_array_reshape");
    *out = give_array(as_view(given, given.reshaped(wanted)));
  });
}

int hn_array_slice(HnArray array, int64_t begin, int64_t end, HnArray* out) {
  return guarded([&] {
    const NDArray given = array_of(array, "hn_array_slice", "array");
    require(out, "hn_array_slice", "out");
    c_api::check_dense(given, "hn_array_slice");
    *out = give_array(as_view(given, given.sliced(begin, end)));
  });
}

int hn_array_to_dlpack(HnArray array, void** out) {
  return guarded([&] {
    const NDArray given = array_of(array, "hn_array_to_dlpack", "array");
    require(out, "hn_array_to_dlpack", "out");
    c_api::check_dense(given, "hn_array_to_dlpack");
    c_api::require_on_cpu(given, "hn_array_to_dlpack");
    given.wait_to_read();
    *out = dlpack::export_array(given);
  });
}

int hn_array_from_dlpack(void* managed, HnArray* out) {
  return guarded([&] {
    require(managed, "hn_array_from_dlpack", "managed");
    require(out, "hn_array_from_dlpack", "out");
    auto* tensor = static_cast<dlpack::DLManagedTensor*>(managed);
    *out = give_array(dlpack::import_array(tensor->dl_tensor, [tensor] {
      if (tensor->deleter != nullptr) tensor->deleter(tensor);
    }));
  });
}

int hn_arrays_load(const char* path, size_t* count, HnArray** arrays, const char*** names) {
  return guarded([&] {
    require(path, "hn_arrays_load", "path");
    require(count, "hn_arrays_load", "count");
    require(arrays, "hn_arrays_load", "arrays");
    require(names, "hn_arrays_load", "names");
    c_api::give_loaded(load_arrays(path), path, count, arrays, names);
  });
}

int hn_arrays_load_from_memory(const void* bytes, size_t size, size_t* count, HnArray** arrays, const char*** names) {
  return guarded([&] {
    require(bytes, "hn_arrays_load_from_memory", "bytes");
    require(count, "hn_arrays_load_from_memory", "count");
    require(arrays, "hn_arrays_load_from_memory", "arrays");
    require(names, "hn_arrays_load_from_memory", "names");
    c_api::give_loaded(load_arrays_from_buffer({static_cast<const char*>(bytes), size}, "<memory>"), "<memory>", count,
                       arrays, names);
  });
}

int hn_arrays_free(size_t count, HnArray* arrays, const char** names) {
  return guarded([&] {
    std::exception_ptr first;  // after an error the other handles are still freed
    for (size_t i = 0; arrays && i < count; ++i) try {
        c_api::free_handle<c_api::ArrayHandle>(arrays[i], "hn_arrays_free");
      } catch (const Error&) {
        if (!first) first = std::current_exception();
      }
    for (size_t i = 0; names && i < count; ++i) free(const_cast<char*>(names[i]));
    delete[] arrays;
    delete[] names;
    if (first) std::rethrow_exception(first);
  });
}

int hn_arrays_save(const char* path, size_t count, const HnArray* arrays, const char* const* names) {
  return guarded([&] {
    require(path, "hn_arrays_save", "path");
    const std::vector<NDArray> list = c_api::arrays_of(count, arrays, "hn_arrays_save", "arrays");
    std::vector<std::string> texts;
    for (size_t i = 0; names && i < count; ++i) {
      require(names[i], "hn_arrays_save", "names");
      texts.emplace_back(names[i]);
    }
    save_arrays(path, list, texts, false);
  });
}
