#include "c_api/arrays.h"

#include <cstring>

#include "c_api/status.h"
#include "hybridnet/sparse.h"

using namespace hybridnet;  // the functions below are C: they have no namespace of their own
using c_api::guarded;
using c_api::require;

int hn_array_create(const int64_t* shape, int ndim, int dtype, const void* data, HnArray* out) {
  return guarded([&] {
    require(out, "hn_array_create", "out");
    if (ndim < 0 || ndim > kMaxDims) {
      throw ShapeError({.op = "hn_array_create",
                        .input = "ndim",
                        .expected = "0 to " + std::to_string(kMaxDims),
                        .given = std::to_string(ndim)});
    }
    if (ndim > 0) require(shape, "hn_array_create", "shape");
    if (!dtype_valid_code(dtype)) {
      throw DTypeError(
          {.op = "hn_array_create", .input = "dtype", .expected = "a code of HnDType", .given = std::to_string(dtype)});
    }
    const Shape dims(std::span<const int64_t>(shape, static_cast<size_t>(ndim)));
    int64_t bytes = dtype_size(static_cast<DType>(dtype));
    for (int64_t d : dims) {
      if (d < 0 || __builtin_mul_overflow(bytes, d, &bytes))
        throw ShapeError({.op = "hn_array_create",
                          .input = "shape",
                          .expected = "sizes >= 0 of a total below 2^63 bytes",
                          .given = dims.str()});
    }
    NDArray array = NDArray::empty(dims, static_cast<DType>(dtype));
    if (bytes > 0) {
      if (data) {
        array.copy_from(data);
      } else {
        std::memset(array.data(), 0, static_cast<size_t>(bytes));
      }
    }
    *out = new HnArray_{std::move(array)};
  });
}

int hn_array_free(HnArray array) {
  return guarded([&] { delete array; });
}

int hn_array_ndim(HnArray array, int* out) {
  return guarded([&] {
    require(array, "hn_array_ndim", "array");
    require(out, "hn_array_ndim", "out");
    *out = array->array.ndim();
  });
}

int hn_array_shape(HnArray array, const int64_t** out) {
  return guarded([&] {
    require(array, "hn_array_shape", "array");
    require(out, "hn_array_shape", "out");
    *out = array->array.shape().begin();
  });
}

int hn_array_dtype(HnArray array, int* out) {
  return guarded([&] {
    require(array, "hn_array_dtype", "array");
    require(out, "hn_array_dtype", "out");
    *out = static_cast<int>(array->array.dtype());
  });
}

int hn_array_size(HnArray array, int64_t* out) {
  return guarded([&] {
    require(array, "hn_array_size", "array");
    require(out, "hn_array_size", "out");
    *out = array->array.size();
  });
}

int hn_array_data(HnArray array, const void** out) {
  return guarded([&] {
    require(array, "hn_array_data", "array");
    require(out, "hn_array_data", "out");
    array->array.wait_to_read();
    *out = array->array.data();
  });
}

int hn_array_copy_to(HnArray array, void* target, size_t bytes) {
  return guarded([&] {
    require(array, "hn_array_copy_to", "array");
    if (bytes != static_cast<size_t>(array->array.bytes())) {
      throw ValueError({.op = "hn_array_copy_to",
                        .input = "bytes",
                        .expected = std::to_string(array->array.bytes()),
                        .given = std::to_string(bytes),
                        .because = "the array is " + array->array.spec().str()});
    }
    if (bytes > 0) require(target, "hn_array_copy_to", "target");
    array->array.copy_to(target);
  });
}

int hn_arrays_load(const char* path, size_t* count, HnArray** arrays, const char*** names) {
  return guarded([&] {
    require(path, "hn_arrays_load", "path");
    require(count, "hn_arrays_load", "count");
    require(arrays, "hn_arrays_load", "arrays");
    require(names, "hn_arrays_load", "names");
    LoadedArrays loaded = load_arrays(path);
    for (size_t i = 0; i < loaded.arrays.size(); ++i)
      if (!loaded.arrays[i])
        throw FormatError({.input = path, .message = "array " + std::to_string(i) + " has no value"});
    const size_t n = loaded.arrays.size();
    auto* handles = new HnArray[n];
    for (size_t i = 0; i < n; ++i) handles[i] = new HnArray_{to_dense(loaded.arrays[i])};
    const char** texts = nullptr;
    if (loaded.named) {
      texts = new const char*[n];
      for (size_t i = 0; i < n; ++i) texts[i] = strdup(loaded.names[i].c_str());
    }
    *count = n;
    *arrays = handles;
    *names = texts;
  });
}

int hn_arrays_free(size_t count, HnArray* arrays, const char** names) {
  return guarded([&] {
    for (size_t i = 0; arrays && i < count; ++i) delete arrays[i];
    for (size_t i = 0; names && i < count; ++i) free(const_cast<char*>(names[i]));
    delete[] arrays;
    delete[] names;
  });
}

int hn_arrays_save(const char* path, size_t count, const HnArray* arrays, const char* const* names) {
  return guarded([&] {
    require(path, "hn_arrays_save", "path");
    if (count > 0) require(arrays, "hn_arrays_save", "arrays");
    std::vector<NDArray> list;
    std::vector<std::string> texts;
    for (size_t i = 0; i < count; ++i) {
      require(arrays[i], "hn_arrays_save", "arrays");
      list.push_back(arrays[i]->array);
      if (names) require(names[i], "hn_arrays_save", "names"), texts.emplace_back(names[i]);
    }
    save_arrays(path, list, texts, false);
  });
}
