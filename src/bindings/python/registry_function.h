// RegistryFunction: base of the callables for operators. Each is an attribute of a module, by which it pickles; Python
// (hybridnet.ops._describe) makes its docstring and signature on access.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <string>

#include "op_info.h"

namespace hybridnet::python {

struct RegistryFunctionObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  const OpInfo* info;  // the operator; if there are several, the one for two arrays
  PyObject* name;      // public name
  PyObject* module;
};

int init_registry_function_type(PyObject* module);  // 0, or -1 with the error set

// Makes a subtype, which becomes an attribute of the module under the last part of its name. Returns null with the
// error set on failure.
PyTypeObject* make_registry_function_type(PyObject* module, PyType_Spec& spec);

// Makes a new object; the members of the subtype are zero.
Owned make_registry_function(PyTypeObject* type, vectorcallfunc call, const OpInfo& info, const std::string& name,
                             const std::string& module);

}  // namespace hybridnet::python
