// What a trace asks for every block and every parameter, as plain functions of CPython: binding them costs more than
// they do.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace hybridnet::python {

int init_trace_functions(PyObject* module);  // 0, or -1 with the error set

}  // namespace hybridnet::python
