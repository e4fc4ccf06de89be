// OpFunction: one callable object per operator and namespace; nd.X, sym.X and F.X are such objects. A call parses its
// arguments straight into the operator's parameters; given arrays it runs the operator, given Symbols it makes a node.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "op_info.h"

namespace hybridnet::python {

int init_op_function_type(PyObject* module);  // 0, or -1 with the error set

// `symbolic`: a call without any input makes a node. `numpy`: results of such a call are of the mx.np class.
// Throws ParamError when the registry does not know `op_name`.
Owned make_op_function(const std::string& op_name, const std::string& public_name, const std::string& module,
                       bool symbolic, bool numpy);

// The object that says "argument not given" in MXNet programs (hybridnet.base._Null).
void set_not_given(PyObject* object);

}  // namespace hybridnet::python
