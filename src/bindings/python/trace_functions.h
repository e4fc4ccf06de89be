// Functions that a trace calls for every block and every parameter. They are plain CPython functions, because a call
// through pybind11 costs more than their work.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

namespace hybridnet::python {

int init_trace_functions(PyObject* module);  // 0, or -1 with the error set

}  // namespace hybridnet::python
