// Python's operators on Symbols.
#pragma once

#include <vector>

#include "array_object.h"
#include "symbol_object.h"

namespace hybridnet::python {

void add_symbol_arithmetic_slots(std::vector<PyType_Slot>& slots);
PyObject* symbol_binary_operation(Binary kind, PyObject* left, PyObject* right);

}  // namespace hybridnet::python
