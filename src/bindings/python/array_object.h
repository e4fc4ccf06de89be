// NDArrayBase: the C part of hybridnet.NDArray. One handle, no dictionary.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <array>

#include "hybridnet/ndarray.h"
#include "python_errors.h"

namespace hybridnet::python {

struct ArrayObject {
  PyObject_HEAD NDArray array;
  PyObject* weakrefs;
};

// Binary operators with an array on one side and an array or a number on the other.
enum class Binary : int8_t {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kModulo,
  kPower,
  kMaximum,
  kMinimum,
  kHypot,
  kEqual,
  kNotEqual,
  kGreater,
  kGreaterEqual,
  kLess,
  kLessEqual,
  kAnd,
  kOr,
  kXor,
  kFloorDivide,  // for integers only
  kCount,
};
inline constexpr int kBinaryCount = static_cast<int>(Binary::kCount);

struct OpInfo;

// A Python class of results: NDArray or mx.np.ndarray. Results have the class of the first array.
struct ArrayClass {
  PyTypeObject* type = nullptr;                           // strong reference
  std::array<const OpInfo*, kBinaryCount> array_ops{};    // array with array
  std::array<const OpInfo*, kBinaryCount> scalar_ops{};   // array with number
  std::array<const OpInfo*, kBinaryCount> reverse_ops{};  // number with array
  bool operators_ready = false;                           // ops are looked up at the first use of an operator
  const char* const (*names)[3] = nullptr;                // kBinaryCount rows: array, scalar, reverse
  PyObject* converter = nullptr;                          // array(source, ctx, dtype), for NumPy operands of this class
};

extern PyTypeObject* array_base_type;  // NDArrayBase
extern ArrayClass nd_class, np_class;  // np_class.type is null until mx.np is imported

// Classes of sparse arrays by StorageType; null until Python registers them, and for dense storage.
extern PyTypeObject* sparse_classes[3];

int init_array_type(PyObject* module);  // 0, or -1 with the error set

// Makes `cls` (a subclass of NDArrayBase without own slots) the class of op results.
void register_array_class(PyObject* cls, bool numpy);

inline bool is_array(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  return type == nd_class.type || type == np_class.type || PyType_IsSubtype(type, array_base_type);
}
inline NDArray& array_of(PyObject* object) { return reinterpret_cast<ArrayObject*>(object)->array; }
// Returns the array in `object`; throws TypeError naming `what`.
NDArray& expect_array(PyObject* object, const char* what);

// Returns the class of the results of an op whose first array is `object`.
inline ArrayClass& result_class(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (type == nd_class.type) return nd_class;
  if (np_class.type != nullptr && (type == np_class.type || PyType_IsSubtype(type, np_class.type))) return np_class;
  return nd_class;
}

// Raises TypeError, which names both conversions, if one call mixes arrays of mx.nd and of mx.np.
void require_same_class(PyObject* first, PyObject* other, const std::string& operator_name);

// Return a new reference; null with the error set if memory is short. wrap_array() gives sparse arrays the class of
// their storage.
PyObject* wrap_array(NDArray array, ArrayClass& cls);
PyObject* wrap_array_as(NDArray array, PyTypeObject* type);

Owned shape_to_tuple(const Shape& shape);  // throws PythonErrorIsSet
// Returns the shape in an int or a sequence of ints; throws TypeError naming `what`.
Shape shape_from(PyObject* object, const char* what);
// Returns a borrowed reference to the NumPy type to which users compare x.dtype: numpy.float32, ml_dtypes.bfloat16.
PyObject* numpy_type(DType dtype);
// Returns the dtype of a NumPy dtype, type, or name; throws DTypeError.
DType dtype_from(PyObject* object);

// Blocks until the array may be read, with the GIL released; Ctrl-C interrupts (PythonErrorIsSet).
void wait_interruptibly(const NDArray& array, bool to_write = false);
void wait_all_interruptibly();

}  // namespace hybridnet::python
