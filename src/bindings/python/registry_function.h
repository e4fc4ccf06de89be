// RegistryFunction: what the callables made of operators share. Each is an attribute of a module, by which it pickles;
// its docstring and signature are written by Python (hybridnet.ops._describe) when they are asked for.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <string>

#include "op_info.h"

namespace hybridnet::python {

struct RegistryFunctionObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  const OpInfo* info;  // of the operator, the one for two arrays where there are several
  PyObject* name;      // public name
  PyObject* module;
};

int init_registry_function_type(PyObject* module);  // 0, or -1 with the error set

// A subtype, which becomes an attribute of the module by the last part of its name. Null with the error set.
PyTypeObject* make_registry_function_type(PyObject* module, PyType_Spec& spec);

// A new object whose own part is zero.
Owned make_registry_function(PyTypeObject* type, vectorcallfunc call, const OpInfo& info, const std::string& name,
                             const std::string& module);

}  // namespace hybridnet::python
