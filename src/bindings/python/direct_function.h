// DirectFunction: a Python function whose usual call, arrays by position followed by parameters, is a call of one
// operator. These calls reach the operator without a Python frame; all others, and calls that the operator refuses, run
// the Python function.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "python_errors.h"

namespace hybridnet::python {

int init_direct_function_type(PyObject* module);  // 0, or -1 with the error set

// inputs: number of arrays. names: the parameters after them, by position or keyword, as strings. needed: number of
// leading parameters that must be given (their default in the operator differs from the function's). tuple: the
// function returns a tuple of the operator's outputs, even if there is only one.
Owned make_direct_function(PyObject* function, PyObject* op, Py_ssize_t inputs, PyObject* names, Py_ssize_t needed,
                           bool tuple);

}  // namespace hybridnet::python
