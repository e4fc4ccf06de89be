// OpFunction: one callable object per operator and namespace; nd.X, sym.X and F.X are such objects. A call parses its
// arguments directly into the operator's parameters; with arrays it runs the operator, with Symbols it makes a node.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <vector>

#include "op_info.h"

namespace hybridnet::python {

int init_op_function_type(PyObject* module);  // 0, or -1 with the error set

// `symbolic`: a call without any input makes a node. `numpy`: results of such a call are of the mx.np class.
// `order`: positional arguments after the inputs, names of parameters and "out"; a variadic operator then takes its
// inputs as one sequence. Empty: all parameters in declared order, out by keyword.
// `fixed` and `renamed`: dicts, see adapted_info(); `order` has the public names. Null: none.
// Throws ParamError for an unknown `op_name` or an unknown parameter in `order`.
Owned make_op_function(const std::string& op_name, const std::string& public_name, const std::string& module,
                       bool symbolic, bool numpy, const std::vector<std::string>& order = {}, PyObject* fixed = nullptr,
                       PyObject* renamed = nullptr);

// Registered by hybridnet.numpy: f(function, args, kwargs) handles calls of mx.np functions whose inputs are neither
// arrays nor Symbols: numbers, lists, NumPy arrays.
void set_numpy_fallback(PyObject* callable);
PyObject* call_numpy_fallback(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames);

// While on, calls of all functions without any input make nodes on this thread: mx.sym.np shares the functions of
// mx.np. Returns the previous setting.
bool set_symbolic_calls(bool on);

// Sets the object that means "argument not given" in MXNet programs (hybridnet.base._Null).
void set_not_given(PyObject* object);

}  // namespace hybridnet::python
