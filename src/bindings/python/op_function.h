// OpFunction: one callable object per operator and namespace; nd.X, sym.X and F.X are such objects. A call parses its
// arguments straight into the operator's parameters; given arrays it runs the operator, given Symbols it makes a node.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <vector>

#include "op_info.h"

namespace hybridnet::python {

int init_op_function_type(PyObject* module);  // 0, or -1 with the error set

// `symbolic`: a call without any input makes a node. `numpy`: results of such a call are of the mx.np class.
// `order`: what stands behind the inputs in calls by position, names of parameters and "out"; a variadic operator then
// takes its inputs as one sequence. Empty: all parameters as declared, out by keyword.
// `fixed` and `renamed`: dicts, see adapted_info(); `order` has the public names. Null: none.
// Throws ParamError when the registry does not know `op_name` or the operator a parameter of `order`.
Owned make_op_function(const std::string& op_name, const std::string& public_name, const std::string& module,
                       bool symbolic, bool numpy, const std::vector<std::string>& order = {}, PyObject* fixed = nullptr,
                       PyObject* renamed = nullptr);

// Registered by hybridnet.numpy: f(function, args, kwargs) answers calls of mx.np's functions whose inputs are neither
// arrays nor Symbols: numbers, lists, NumPy arrays.
void set_numpy_fallback(PyObject* callable);
PyObject* call_numpy_fallback(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames);

// While on, calls without any input make nodes on this thread, whatever the function: mx.sym.np shares the functions of
// mx.np. Returns what it was.
bool set_symbolic_calls(bool on);

// The object that says "argument not given" in MXNet programs (hybridnet.base._Null).
void set_not_given(PyObject* object);

}  // namespace hybridnet::python
