// DirectFunction: a function written in Python that is an operator for the usual call, arrays by position and
// parameters behind them. Such calls reach the operator without a frame of Python; all others, and those that the
// operator refuses, are calls of the function.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "python_errors.h"

namespace hybridnet::python {

int init_direct_function_type(PyObject* module);  // 0, or -1 with the error set

// inputs: how many arrays. names: parameters behind them, by position and by keyword, as strings. needed: how many of
// these the operator cannot do without (its default is another than the function's). tuple: the function returns a
// tuple of the operator's outputs, also of a single one.
Owned make_direct_function(PyObject* function, PyObject* op, Py_ssize_t inputs, PyObject* names, Py_ssize_t needed,
                           bool tuple);

}  // namespace hybridnet::python
