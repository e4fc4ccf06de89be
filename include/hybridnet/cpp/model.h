// Run an exported HybridNet model from C++. Header only; link with libhybridnet:
//
//   find_package(hybridnet REQUIRED)
//   target_link_libraries(app PRIVATE hybridnet::hybridnet)
//
//   hybridnet::cpp::Model model("digits-symbol.json", "digits-0000.params");
//   auto image = hybridnet::cpp::Array::from<float>({1, 1, 8, 8}, pixels);
//   std::vector<float> scores = model.run({image})[0].to_vector<float>();
//
// Failures throw hybridnet::cpp::Error with the text that Python users see.
// Threads: one Model may be run by many threads at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hybridnet/c_api.h"

namespace hybridnet::cpp {

class Error : public std::runtime_error {
 public:
  Error(std::string kind, const std::string& text) : std::runtime_error(text), kind_(std::move(kind)) {}
  // "ShapeError", "FormatError", ...
  const std::string& kind() const { return kind_; }

 private:
  std::string kind_;
};

namespace detail {

inline void check(int status) {
  if (status != 0) throw Error(hn_last_error_kind(), hn_last_error());
}

template <typename T>
struct dtype_code;
template <>
struct dtype_code<float> {
  static constexpr int value = HN_FLOAT32;
};
template <>
struct dtype_code<double> {
  static constexpr int value = HN_FLOAT64;
};
template <>
struct dtype_code<uint8_t> {
  static constexpr int value = HN_UINT8;
};
template <>
struct dtype_code<int8_t> {
  static constexpr int value = HN_INT8;
};
template <>
struct dtype_code<int32_t> {
  static constexpr int value = HN_INT32;
};
template <>
struct dtype_code<int64_t> {
  static constexpr int value = HN_INT64;
};
template <>
struct dtype_code<bool> {
  static constexpr int value = HN_BOOL;
};

}  // namespace detail

// A tensor. Copies share the memory.
class Array {
 public:
  // A copy of row-major `values`; their number must be the product of `shape`.
  template <typename T>
  static Array from(std::vector<int64_t> shape, std::span<const T> values) {
    int64_t size = 1;
    for (int64_t d : shape) size *= d;
    if (size != static_cast<int64_t>(values.size()))
      throw Error("ShapeError", "the shape has " + std::to_string(size) + " elements, but " +
                                    std::to_string(values.size()) + " values came");
    HnArray handle = nullptr;
    detail::check(hn_array_create(shape.data(), static_cast<int>(shape.size()), detail::dtype_code<T>::value,
                                  values.data(), &handle));
    return Array(handle);
  }
  template <typename T>
  static Array from(std::vector<int64_t> shape, const std::vector<T>& values) {
    return from<T>(std::move(shape), std::span<const T>(values));
  }
  static Array zeros(std::vector<int64_t> shape, HnDType dtype = HN_FLOAT32) {
    HnArray handle = nullptr;
    detail::check(hn_array_create(shape.data(), static_cast<int>(shape.size()), dtype, nullptr, &handle));
    return Array(handle);
  }
  explicit Array(HnArray handle) : handle_(handle, &hn_array_free) {}  // takes the handle over

  std::vector<int64_t> shape() const {
    int ndim = 0;
    const int64_t* dims = nullptr;
    detail::check(hn_array_ndim(get(), &ndim));
    detail::check(hn_array_shape(get(), &dims));
    return {dims, dims + ndim};
  }
  int64_t size() const {
    int64_t n = 0;
    detail::check(hn_array_size(get(), &n));
    return n;
  }
  HnDType dtype() const {
    int code = 0;
    detail::check(hn_array_dtype(get(), &code));
    return static_cast<HnDType>(code);
  }
  // The elements, after waiting for them; valid while the array lives. T must be the array's type.
  template <typename T>
  std::span<const T> values() const {
    if (dtype() != detail::dtype_code<T>::value)
      throw Error("DTypeError", "the array has dtype code " + std::to_string(dtype()) + ", not " +
                                    std::to_string(detail::dtype_code<T>::value));
    const void* data = nullptr;
    detail::check(hn_array_data(get(), &data));
    return {static_cast<const T*>(data), static_cast<size_t>(size())};
  }
  template <typename T>
  std::vector<T> to_vector() const {
    auto v = values<T>();
    return {v.begin(), v.end()};
  }
  HnArray get() const { return handle_.get(); }

 private:
  std::shared_ptr<HnArray_> handle_;
};

// Reads a .params file: (name, array) pairs; names are empty in files without names.
inline std::vector<std::pair<std::string, Array>> load_arrays(const std::string& path) {
  size_t count = 0;
  HnArray* arrays = nullptr;
  const char** names = nullptr;
  detail::check(hn_arrays_load(path.c_str(), &count, &arrays, &names));
  std::vector<std::pair<std::string, Array>> result;
  for (size_t i = 0; i < count; ++i) {
    result.emplace_back(names ? names[i] : "", Array(arrays[i]));
    arrays[i] = nullptr;
  }
  hn_arrays_free(count, arrays, names);
  return result;
}

// Loads a shared object that brings operators, before models that contain them (docs/operator-libraries.md).
inline void load_library(const std::string& path) { detail::check(hn_library_load(path.c_str())); }

// An exported network.
class Model {
 public:
  Model(const std::string& symbol_file, const std::string& params_file) {
    HnModel handle = nullptr;
    detail::check(hn_model_load(symbol_file.c_str(), params_file.c_str(), &handle));
    handle_ = {handle, &hn_model_free};
  }
  static Model from_memory(std::string_view json, std::span<const std::byte> params) {
    HnModel handle = nullptr;
    detail::check(hn_model_load_from_memory(json.data(), json.size(), params.data(), params.size(), &handle));
    Model model;
    model.handle_ = {handle, &hn_model_free};
    return model;
  }

  std::vector<std::string> input_names() const { return names(hn_model_num_inputs, hn_model_input_name); }
  std::vector<std::string> output_names() const { return names(hn_model_num_outputs, hn_model_output_name); }

  // Shapes of the outputs for inputs of these shapes.
  std::vector<std::vector<int64_t>> infer_shapes(const std::vector<std::vector<int64_t>>& inputs) const {
    std::vector<int> ndims;
    std::vector<const int64_t*> shapes;
    for (const auto& s : inputs) ndims.push_back(static_cast<int>(s.size())), shapes.push_back(s.data());
    size_t count = 0;
    const int* out_ndims = nullptr;
    const int64_t* const* out_shapes = nullptr;
    detail::check(hn_model_infer_shapes(handle_.get(), inputs.size(), ndims.data(), shapes.data(), &count, &out_ndims,
                                        &out_shapes));
    std::vector<std::vector<int64_t>> result;
    for (size_t i = 0; i < count; ++i) result.emplace_back(out_shapes[i], out_shapes[i] + out_ndims[i]);
    return result;
  }

  // Inputs in the order of input_names().
  std::vector<Array> run(const std::vector<Array>& inputs) const {
    std::vector<HnArray> in;
    for (const Array& a : inputs) in.push_back(a.get());
    size_t count = 0;
    detail::check(hn_model_num_outputs(handle_.get(), &count));
    std::vector<HnArray> out(count, nullptr);
    detail::check(hn_model_run(handle_.get(), in.size(), in.data(), out.size(), out.data()));
    std::vector<Array> result;
    for (HnArray a : out) result.emplace_back(a);
    return result;
  }

  // What the latest run executed, instruction by instruction (docs/debugging.md); empty before the first run.
  std::string plan_text() const {
    const char* text = nullptr;
    detail::check(hn_model_plan_text(handle_.get(), &text));
    return text;
  }

 private:
  Model() = default;
  template <typename Count, typename Name>
  std::vector<std::string> names(Count count_of, Name name_of) const {
    size_t count = 0;
    detail::check(count_of(handle_.get(), &count));
    std::vector<std::string> result;
    for (size_t i = 0; i < count; ++i) {
      const char* name = nullptr;
      detail::check(name_of(handle_.get(), i, &name));
      result.emplace_back(name);
    }
    return result;
  }
  std::shared_ptr<HnModel_> handle_;
};

}  // namespace hybridnet::cpp
