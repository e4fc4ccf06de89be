// Arrays: memory with a shape and a dtype, arithmetic on them, and operators by name. nd.h has every operator as a
// function with typed parameters.
//
//   Array x = Array::from<float>({2, 2}, {1, 2, 3, 4});
//   Array y = 2 * x + 1;
//   std::vector<float> values = y.to_vector<float>();
//
// Copies of an Array share the memory. Calls return before the work is done; reading values waits for it.
#pragma once

#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hybridnet/c_api.h"
#include "hybridnet/cpp/device.h"
#include "hybridnet/cpp/error.h"

namespace hybridnet::cpp {

using Shape = std::vector<int64_t>;

namespace detail {

template <typename T>
struct dtype_code;
template <>
struct dtype_code<float> {
  static constexpr HnDType value = HN_FLOAT32;
};
template <>
struct dtype_code<double> {
  static constexpr HnDType value = HN_FLOAT64;
};
template <>
struct dtype_code<uint8_t> {
  static constexpr HnDType value = HN_UINT8;
};
template <>
struct dtype_code<int8_t> {
  static constexpr HnDType value = HN_INT8;
};
template <>
struct dtype_code<int32_t> {
  static constexpr HnDType value = HN_INT32;
};
template <>
struct dtype_code<int64_t> {
  static constexpr HnDType value = HN_INT64;
};
template <>
struct dtype_code<bool> {
  static constexpr HnDType value = HN_BOOL;
};

// Return the text of an attribute as in -symbol.json: True, 3, 0.1, (2, 2), relu.
inline std::string text(bool value) { return value ? "True" : "False"; }
template <std::integral T>
std::string text(T value) {
  return std::to_string(value);
}
inline std::string text(double value) {  // the shortest text that reads back as the same number
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, value).ptr};
}
inline std::string text(std::string_view value) { return std::string(value); }
inline std::string text(const char* value) { return value; }
inline std::string text(HnDType dtype) {
  if (const char* name = hn_dtype_name(dtype)) return name;
  throw DTypeError("expected a value of HnDType, got " + std::to_string(static_cast<int>(dtype)));
}
template <typename T>
std::string text(const std::vector<T>& values);
template <typename T>
std::string text(const std::optional<T>& value) {
  return value ? text(*value) : "None";
}
template <typename T>
std::string text(const std::vector<T>& values) {
  std::string result = "(";
  for (const T& value : values) result += text(value) + ", ";
  if (values.size() > 1) result.resize(result.size() - 2);
  if (values.size() == 1) result.pop_back();
  return result + ")";
}

}  // namespace detail

// Name and text of an attribute of an operator.
struct Attribute {
  template <typename T>
  Attribute(std::string attribute, const T& value) : name(std::move(attribute)), value(detail::text(value)) {}
  std::string name, value;
};
using Attributes = std::vector<Attribute>;

class Array {
 public:
  Array() = default;                                                   // no array
  explicit Array(HnArray handle) : handle_(handle, &hn_array_free) {}  // takes over the handle

  // A copy of row-major `values` on a device; their number must be the product of `shape`.
  template <typename T>
  static Array from(const Shape& shape, std::span<const T> values, const Device& device = {}) {
    int64_t size = 1;
    for (const int64_t d : shape) size *= d;
    if (size != static_cast<int64_t>(values.size()))
      throw ShapeError("the shape has " + std::to_string(size) + " elements, but " + std::to_string(values.size()) +
                       " values came");
    return create(shape, detail::dtype_code<T>::value, values.data(), device);
  }
  template <typename T>
  static Array from(const Shape& shape, const std::vector<T>& values, const Device& device = {}) {
    return from<T>(shape, std::span<const T>(values), device);
  }
  template <typename T>
  static Array from(const Shape& shape, std::initializer_list<T> values, const Device& device = {}) {
    return from<T>(shape, std::span<const T>(values.begin(), values.size()), device);
  }
  static Array zeros(const Shape& shape, HnDType dtype = HN_FLOAT32, const Device& device = {}) {
    return create(shape, dtype, nullptr, device);
  }
  // An array over memory of the caller, without a copy; the memory must outlive all arrays over it.
  template <typename T>
  static Array wrap(T* data, const Shape& shape) {
    HnArray handle = nullptr;
    detail::check(hn_array_wrap(data, shape.data(), static_cast<int>(shape.size()), detail::dtype_code<T>::value,
                                nullptr, nullptr, &handle));
    return Array(handle);
  }
  // The same for memory that `release` frees when the last array over it has died.
  template <typename T>
  static Array wrap(T* data, const Shape& shape, std::function<void()> release) {
    auto owner = std::make_unique<std::function<void()>>(std::move(release));
    HnArray handle = nullptr;
    detail::check(hn_array_wrap(
        data, shape.data(), static_cast<int>(shape.size()), detail::dtype_code<T>::value,
        [](void* context) {
          const std::unique_ptr<std::function<void()>> held(static_cast<std::function<void()>*>(context));
          (*held)();
        },
        owner.get(), &handle));
    owner.release();
    return Array(handle);
  }
  // An array over a DLManagedTensor* of dlpack.h, which it takes over.
  static Array from_dlpack(void* managed) {
    HnArray handle = nullptr;
    detail::check(hn_array_from_dlpack(managed, &handle));
    return Array(handle);
  }
  void* to_dlpack() const {
    void* managed = nullptr;
    detail::check(hn_array_to_dlpack(get(), &managed));
    return managed;
  }

  // Sparse arrays over parts (see part()): indices and indptr are int64, and copied; data is not copied. Rows of
  // row_sparse may come in any order; rows that repeat are summed. Throw FormatError for indices out of bounds.
  static Array row_sparse(const Shape& shape, const Array& data, const Array& indices) {
    return create_sparse("row_sparse", shape, data, indices, nullptr);
  }
  static Array csr(const Shape& shape, const Array& data, const Array& indices, const Array& indptr) {
    return create_sparse("csr", shape, data, indices, indptr.get());
  }

  explicit operator bool() const { return handle_ != nullptr; }
  HnArray get() const { return handle_.get(); }

  Shape shape() const {
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

  // The device of the memory.
  Device device() const {
    return detail::device_from([&](int* type, int* id) { return hn_array_device(get(), type, id); });
  }
  // The array itself if it is on the device, else a copy there; while gradients are recorded they go back the same way.
  Array to(const Device& target) const {
    if (device() == target) return *this;
    HnArray handle = nullptr;
    detail::check(hn_array_copy_to_device(get(), target.type, target.id, &handle));
    return Array(handle);
  }

  // The storage type: "default" (dense), "row_sparse" or "csr".
  std::string storage() const {
    const char* name = nullptr;
    detail::check(hn_array_storage(get(), &name));
    return name;
  }
  bool is_sparse() const { return storage() != "default"; }
  // A part of a sparse array: "data", "indices" (of rows, or of columns for csr) or "indptr" (the begins of csr rows).
  Array part(const std::string& name) const {
    HnArray handle = nullptr;
    detail::check(hn_array_part(get(), name.c_str(), &handle));
    return Array(handle);
  }
  // A new array of the same values in another storage.
  Array cast_storage(const std::string& storage) const {
    HnArray handle = nullptr;
    detail::check(hn_array_cast_storage(get(), storage.c_str(), &handle));
    return Array(handle);
  }
  Array to_dense() const { return cast_storage("default"); }

  void wait() const { detail::check(hn_array_wait(get())); }
  // The elements of a dense array on the CPU, after waiting for them; valid while the array lives. T must be the
  // array's type. to_vector(), item() and copy_from() work for arrays of every device. For parameters call to_vector():
  // after values(), no packed copies of them are kept any more (hn_array_data()).
  template <typename T>
  std::span<const T> values() const {
    check_dtype<T>();
    const void* data = nullptr;
    detail::check(hn_array_data(get(), &data));
    return {static_cast<const T*>(data), static_cast<size_t>(size())};
  }
  template <typename T>
  std::vector<T> to_vector() const {
    check_dtype<T>();
    const auto count = static_cast<size_t>(size());
    const std::unique_ptr<T[]> copy(new T[count]);  // a vector of bool has no memory to copy to
    detail::check(hn_array_copy_to(get(), copy.get(), count * sizeof(T)));
    return {copy.get(), copy.get() + count};
  }
  // The one element of an array of size 1.
  template <typename T>
  T item() const {
    if (size() != 1) throw ValueError("expected an array of one element, got " + std::to_string(size()));
    check_dtype<T>();
    T value{};
    detail::check(hn_array_copy_to(get(), &value, sizeof(T)));
    return value;
  }
  template <typename T>
  void copy_from(std::span<const T> values) const {
    check_dtype<T>();
    detail::check(hn_array_copy_from(get(), values.data(), values.size_bytes()));
  }
  template <typename T>
  void copy_from(const std::vector<T>& values) const {
    copy_from(std::span<const T>(values));
  }

  Array copy() const { return made(hn_array_copy); }
  Array detach() const { return made(hn_array_detach); }
  Array reshape(const Shape& shape) const {
    HnArray handle = nullptr;
    detail::check(hn_array_reshape(get(), shape.data(), static_cast<int>(shape.size()), &handle));
    return Array(handle);
  }
  // Rows [begin, end) of the leading axis; shares the memory.
  Array slice(int64_t begin, int64_t end) const {
    HnArray handle = nullptr;
    detail::check(hn_array_slice(get(), begin, end, &handle));
    return Array(handle);
  }
  Array astype(HnDType dtype) const;

  // Gradients: see autograd.h.
  void attach_grad(const std::string& grad_req = "write") const {
    detail::check(hn_array_attach_grad(get(), grad_req.c_str()));
  }
  // The same with a gradient in another storage: "row_sparse" stores the rows that backward reaches.
  void attach_grad(const std::string& grad_req, const std::string& storage) const {
    detail::check(hn_array_attach_grad_in(get(), grad_req.c_str(), storage.c_str()));
  }
  Array grad() const { return made(hn_array_grad); }
  void backward(bool retain_graph = false, bool train_mode = true) const {
    const HnArray head = get();
    detail::check(hn_autograd_backward(1, &head, nullptr, retain_graph, train_mode));
  }

  // In place.
  const Array& operator+=(const Array& other) const;
  const Array& operator-=(const Array& other) const;
  const Array& operator*=(const Array& other) const;
  const Array& operator/=(const Array& other) const;
  const Array& operator+=(double number) const;
  const Array& operator-=(double number) const;
  const Array& operator*=(double number) const;
  const Array& operator/=(double number) const;

 private:
  static Array create(const Shape& shape, HnDType dtype, const void* data, const Device& device) {
    HnArray handle = nullptr;
    detail::check(
        hn_array_create_on(device.type, device.id, shape.data(), static_cast<int>(shape.size()), dtype, data, &handle));
    return Array(handle);
  }
  static Array create_sparse(const char* storage, const Shape& shape, const Array& data, const Array& indices,
                             HnArray indptr) {
    HnArray handle = nullptr;
    detail::check(hn_array_create_sparse(storage, shape.data(), static_cast<int>(shape.size()), data.get(),
                                         indices.get(), indptr, &handle));
    return Array(handle);
  }
  Array made(int (*make)(HnArray, HnArray*)) const {
    HnArray handle = nullptr;
    detail::check(make(get(), &handle));
    return Array(handle);
  }
  template <typename T>
  void check_dtype() const {
    if (dtype() != detail::dtype_code<T>::value)
      throw DTypeError("the array is " + detail::text(dtype()) + ", not " + detail::text(detail::dtype_code<T>::value));
  }

  std::shared_ptr<HnArray_> handle_;
};

// Results of an operator. A single result converts to an Array.
class Outputs : public std::vector<Array> {
 public:
  using std::vector<Array>::vector;
  operator Array() const {  // NOLINT: implicit on purpose
    if (size() != 1)
      throw ValueError("the operator has " + std::to_string(size()) + " results: take one by its number");
    return front();
  }
};

// Existing arrays that an operator writes its results into: nd::sgd_update(w, g, {.lr = 0.1}, into(w)).
struct Into {
  std::vector<Array> arrays;
};
template <typename... Arrays>
Into into(const Arrays&... arrays) {
  return {{arrays...}};
}

namespace detail {

inline std::vector<HnArray> handles(const std::vector<Array>& arrays) {
  std::vector<HnArray> result;
  result.reserve(arrays.size());
  for (const Array& array : arrays) result.push_back(array.get());
  return result;
}
inline std::vector<const char*> pointers(const Attributes& attributes, std::string Attribute::*member) {
  std::vector<const char*> result;
  result.reserve(attributes.size());
  for (const Attribute& attribute : attributes) result.push_back((attribute.*member).c_str());
  return result;
}

// Returns the results of call(count, results), which sets *count to the number of results if the room is too small.
template <typename Call>
Outputs results(const Call& call) {
  std::vector<HnArray> arrays(8, nullptr);
  size_t count = arrays.size();
  int status = call(&count, arrays.data());
  if (status != 0 && count > arrays.size()) {
    arrays.resize(count);
    status = call(&count, arrays.data());
  }
  check(status);
  Outputs outputs;
  for (size_t i = 0; i < count; ++i) outputs.emplace_back(arrays[i]);
  return outputs;
}

}  // namespace detail

// Calls an operator by its name.
inline Outputs invoke(const char* name, const std::vector<Array>& inputs, const Attributes& attributes = {},
                      const Into& out = {}) {
  const std::vector<HnArray> in = detail::handles(inputs);
  const auto keys = detail::pointers(attributes, &Attribute::name);
  const auto values = detail::pointers(attributes, &Attribute::value);
  if (!out.arrays.empty()) {
    const std::vector<HnArray> targets = detail::handles(out.arrays);
    detail::check(hn_invoke_into(name, keys.size(), keys.data(), values.data(), in.size(), in.data(), targets.size(),
                                 targets.data()));
    return Outputs(out.arrays.begin(), out.arrays.end());
  }
  return detail::results([&](size_t* count, HnArray* results) {
    return hn_invoke(name, keys.size(), keys.data(), values.data(), in.size(), in.data(), count, results);
  });
}

// An operator whose attributes are parsed once, for many calls, from any number of threads.
class Operator {
 public:
  explicit Operator(const char* name, const Attributes& attributes = {}) {
    const auto keys = detail::pointers(attributes, &Attribute::name);
    const auto values = detail::pointers(attributes, &Attribute::value);
    HnOp handle = nullptr;
    detail::check(hn_op_prepare(name, keys.size(), keys.data(), values.data(), &handle));
    handle_ = {handle, &hn_op_free};
  }
  Outputs operator()(const std::vector<Array>& inputs) const {
    const std::vector<HnArray> in = detail::handles(inputs);
    return detail::results([&](size_t* count, HnArray* results) {
      return hn_op_call(handle_.get(), in.size(), in.data(), count, results);
    });
  }
  // The number of results of a call with num_inputs inputs.
  size_t num_outputs(size_t num_inputs) const {
    size_t count = 0;
    detail::check(hn_op_num_outputs(handle_.get(), num_inputs, &count));
    return count;
  }
  void operator()(const std::vector<Array>& inputs, const Into& out) const {
    const std::vector<HnArray> in = detail::handles(inputs), targets = detail::handles(out.arrays);
    detail::check(hn_op_call_into(handle_.get(), in.size(), in.data(), targets.size(), targets.data()));
  }

 private:
  std::shared_ptr<HnOp_> handle_;
};

// ------------------------------------------------------------------------------------------------------- arithmetic
// Shapes broadcast.
inline Array operator+(const Array& a, const Array& b) { return invoke("broadcast_add", {a, b}); }
inline Array operator-(const Array& a, const Array& b) { return invoke("broadcast_sub", {a, b}); }
inline Array operator*(const Array& a, const Array& b) { return invoke("broadcast_mul", {a, b}); }
inline Array operator/(const Array& a, const Array& b) { return invoke("broadcast_div", {a, b}); }
inline Array operator+(const Array& a, double b) { return invoke("_plus_scalar", {a}, {{"scalar", b}}); }
inline Array operator+(double a, const Array& b) { return b + a; }
inline Array operator-(const Array& a, double b) { return invoke("_minus_scalar", {a}, {{"scalar", b}}); }
inline Array operator-(double a, const Array& b) { return invoke("_rminus_scalar", {b}, {{"scalar", a}}); }
inline Array operator*(const Array& a, double b) { return invoke("_mul_scalar", {a}, {{"scalar", b}}); }
inline Array operator*(double a, const Array& b) { return b * a; }
inline Array operator/(const Array& a, double b) { return invoke("_div_scalar", {a}, {{"scalar", b}}); }
inline Array operator/(double a, const Array& b) { return invoke("_rdiv_scalar", {b}, {{"scalar", a}}); }
inline Array operator-(const Array& a) { return invoke("negative", {a}); }

inline const Array& Array::operator+=(const Array& b) const {
  invoke("broadcast_add", {*this, b}, {}, into(*this));
  return *this;
}
inline const Array& Array::operator-=(const Array& b) const {
  invoke("broadcast_sub", {*this, b}, {}, into(*this));
  return *this;
}
inline const Array& Array::operator*=(const Array& b) const {
  invoke("broadcast_mul", {*this, b}, {}, into(*this));
  return *this;
}
inline const Array& Array::operator/=(const Array& b) const {
  invoke("broadcast_div", {*this, b}, {}, into(*this));
  return *this;
}
inline const Array& Array::operator+=(double b) const {
  invoke("_plus_scalar", {*this}, {{"scalar", b}}, into(*this));
  return *this;
}
inline const Array& Array::operator-=(double b) const {
  invoke("_minus_scalar", {*this}, {{"scalar", b}}, into(*this));
  return *this;
}
inline const Array& Array::operator*=(double b) const {
  invoke("_mul_scalar", {*this}, {{"scalar", b}}, into(*this));
  return *this;
}
inline const Array& Array::operator/=(double b) const {
  invoke("_div_scalar", {*this}, {{"scalar", b}}, into(*this));
  return *this;
}
inline Array Array::astype(HnDType dtype) const { return invoke("Cast", {*this}, {{"dtype", dtype}}); }

// ------------------------------------------------------------------------------------------------------------ files
// Reads a .params file: (name, array) pairs; names are empty in files without names. Sparse arrays stay sparse.
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
// Writes a .params file, without names if all names are empty.
inline void save_arrays(const std::string& path, const std::vector<std::pair<std::string, Array>>& arrays) {
  std::vector<HnArray> handles;
  std::vector<const char*> names;
  bool is_named = false;
  for (const auto& [name, array] : arrays) {
    handles.push_back(array.get());
    names.push_back(name.c_str());
    is_named = is_named || !name.empty();
  }
  detail::check(hn_arrays_save(path.c_str(), handles.size(), handles.data(), is_named ? names.data() : nullptr));
}

// Loads a shared object with operators. Call it before loading models that use them (docs/operator-libraries.md).
inline void load_library(const std::string& path) { detail::check(hn_library_load(path.c_str())); }
// Seeds the random numbers.
inline void seed(uint64_t value) { detail::check(hn_seed(value)); }
// Waits until all work is done.
inline void wait_all() { detail::check(hn_wait_all()); }
// Finishes the library's work before exit() in another thread than the main one (hn_shutdown in c_api.h).
inline void shutdown() { detail::check(hn_shutdown()); }

}  // namespace hybridnet::cpp
