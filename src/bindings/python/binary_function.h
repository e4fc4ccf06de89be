// BinaryFunction: the type of mx.np.add and similar functions. Either argument may be an array, a Symbol or a number;
// a function uses one of three operators.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <string>

#include "op_info.h"

namespace hybridnet::python {

int init_binary_function_type(PyObject* module);  // 0, or -1 with the error set

// `arrays`, `scalar`, `reverse`: the operators for two arrays, an array and a number, a number and an array. Throws
// ParamError for unknown operators.
Owned make_binary_function(const std::string& name, const std::string& module, const std::string& arrays,
                           const std::string& scalar, const std::string& reverse);

}  // namespace hybridnet::python
