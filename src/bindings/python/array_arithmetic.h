// Python's operators on arrays: +, -, *, ==, +=, ... They call the operator directly, without a Python frame.
#pragma once

#include <vector>

#include "array_object.h"

namespace hybridnet::python {

// Operators for arithmetic, one row per Binary: array and array, array and number, number and array.
extern const char* const kClassicOperatorNames[kBinaryCount][3];  // for NDArray
extern const char* const kNumpyOperatorNames[kBinaryCount][3];    // for mx.np.ndarray

void add_arithmetic_slots(std::vector<PyType_Slot>& slots);

// Applies a binary operator to two objects, at least one of them an array; Py_NotImplemented for unsupported operands.
PyObject* binary_operation(Binary kind, PyObject* left, PyObject* right, PyObject* out = nullptr);

// True, with the value, if the object is a number: numpy.generic, bool, int or float.
bool number_of(PyObject* object, double* value, bool* is_int);

inline bool is_integer_or_bool(DType dtype) { return is_integer(dtype) || dtype == DType::kBool; }

// For classic operators on integer arrays: they keep the dtype of the array, as in MXNet, so 2.5 is used as 2. Warns if
// that changes the number; comparisons use the exact number. Throws ParamError in strict programs.
void note_rounding(Binary kind, DType dtype, double value);

// Registered by hybridnet.ndarray and hybridnet.numpy: array(source, ctx, dtype), for NumPy operands of their arrays.
void set_array_converter(PyObject* callable, bool numpy);

}  // namespace hybridnet::python
