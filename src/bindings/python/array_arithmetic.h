// Python's operators on arrays: +, -, *, ==, +=, ... straight to the operator, without a Python frame.
#pragma once

#include <vector>

#include "array_object.h"

namespace hybridnet::python {

// Operators behind arithmetic, one row per Binary: array with array, with a number, a number with array.
extern const char* const kClassicOperatorNames[kBinaryCount][3];  // of NDArray
extern const char* const kNumpyOperatorNames[kBinaryCount][3];    // of mx.np.ndarray

void add_arithmetic_slots(std::vector<PyType_Slot>& slots);

// One binary operator on objects of which at least one is an array; Py_NotImplemented for other partners.
PyObject* binary_operation(Binary kind, PyObject* left, PyObject* right, PyObject* out = nullptr);

// numpy.generic, bool, int and float count as numbers.
bool number_of(PyObject* object, double* value, bool* is_int);

inline bool is_whole(DType dtype) { return is_integer(dtype) || dtype == DType::kBool; }

// For classic operators on whole numbers: they keep the dtype of the array, as MXNet's do, so 2.5 counts as 2. Warns
// where that changes the number; comparisons look at the number itself. Throws ParamError in strict programs.
void note_rounding(Binary kind, DType dtype, double value);

// Registered by hybridnet.ndarray and hybridnet.numpy: array(source, ctx, dtype), for NumPy arrays beside their class.
void set_array_converter(PyObject* callable, bool numpy);

}  // namespace hybridnet::python
