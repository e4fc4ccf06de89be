// Python's operators on arrays: +, -, *, ==, +=, ... straight to the operator, without a Python frame.
#pragma once

#include <vector>

#include "array_object.h"

namespace hybridnet::python {

// Operators behind NDArray's arithmetic, one row per Binary: array with array, with a number, a number with array.
extern const char* const kClassicOperatorNames[kBinaryCount][3];

void add_arithmetic_slots(std::vector<PyType_Slot>& slots);

// One binary operator on objects of which at least one is an array; Py_NotImplemented for other partners.
PyObject* binary_operation(Binary kind, PyObject* left, PyObject* right, PyObject* out = nullptr);

// numpy.generic, bool, int and float count as numbers.
bool number_of(PyObject* object, double* value, bool* is_int);

// Registered by hybridnet.ndarray: array(source, ctx, dtype), for NumPy arrays beside an NDArray.
void set_array_converter(PyObject* callable);

}  // namespace hybridnet::python
