#include "direct_function.h"

#include <structmember.h>

#include <algorithm>
#include <cstddef>

#include "array_object.h"

namespace hybridnet::python {
namespace {

struct DirectFunctionObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject *function, *op;
  vectorcallfunc call_op;
  PyObject* names;  // tuple of interned strings
  PyObject* dict;
  Py_ssize_t inputs, needed;
  bool tuple;  // a single result is returned as a tuple, too
};

PyTypeObject* direct_function_type = nullptr;

Py_ssize_t position_of(PyObject* names, PyObject* name) {  // names of calls are interned
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); ++i)
    if (PyTuple_GET_ITEM(names, i) == name) return i;
  return -1;
}

// True for calls with arrays by position, then parameters of the operator, which include all necessary ones.
bool is_usual(const DirectFunctionObject& f, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  if (nargs < f.inputs || nargs > f.inputs + PyTuple_GET_SIZE(f.names)) return false;
  if (!std::all_of(args, args + f.inputs, is_array)) return false;
  Py_ssize_t needed_given = std::min(nargs - f.inputs, f.needed);
  const Py_ssize_t keywords = kwnames == nullptr ? 0 : PyTuple_GET_SIZE(kwnames);
  for (Py_ssize_t i = 0; i < keywords; ++i) {
    const Py_ssize_t at = position_of(f.names, PyTuple_GET_ITEM(kwnames, i));
    if (at < 0) return false;
    needed_given += at < f.needed;
  }
  return needed_given >= f.needed;
}

// Converts the result of an operator, a list of arrays or one array, to a tuple. Takes the reference.
PyObject* as_tuple(PyObject* result) {
  if (!PyList_Check(result)) {
    PyObject* tuple = PyTuple_New(1);
    if (tuple == nullptr)
      Py_DECREF(result);
    else
      PyTuple_SET_ITEM(tuple, 0, result);
    return tuple;
  }
  PyObject* tuple = PyList_AsTuple(result);
  Py_DECREF(result);
  return tuple;
}

PyObject* call(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  const auto& f = *reinterpret_cast<DirectFunctionObject*>(self);
  if (is_usual(f, args, PyVectorcall_NARGS(nargsf), kwnames)) {
    PyObject* result = f.call_op(f.op, args, nargsf, kwnames);
    if (result != nullptr) return f.tuple ? as_tuple(result) : result;
    if (!PyErr_ExceptionMatches(PyExc_Exception)) return nullptr;
    PyErr_Clear();  // the Python function accepts more kinds of arguments, or has a better error text
  }
  return PyObject_Vectorcall(f.function, args, nargsf, kwnames);
}

void dealloc(PyObject* self) {
  auto& f = *reinterpret_cast<DirectFunctionObject*>(self);
  for (PyObject* part : {f.function, f.op, f.names, f.dict}) Py_XDECREF(part);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* repr(PyObject* self) { return PyObject_Repr(reinterpret_cast<DirectFunctionObject*>(self)->function); }

// Pickles as the attribute of its module, like a Python function.
PyObject* reduce(PyObject* self, PyObject*) { return PyObject_GetAttrString(self, "__qualname__"); }

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(DirectFunctionObject, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(DirectFunctionObject, dict), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
PyGetSetDef getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMethodDef methods[] = {
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

Owned interned(PyObject* names) {
  Owned result = checked(PyTuple_New(PyTuple_GET_SIZE(names)));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); ++i) {
    PyObject* name = Py_NewRef(PyTuple_GET_ITEM(names, i));
    PyUnicode_InternInPlace(&name);
    PyTuple_SET_ITEM(result.get(), i, name);
  }
  return result;
}

}  // namespace

int init_direct_function_type(PyObject* module) {
  PyType_Slot slots[] = {
      {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
      {Py_tp_repr, reinterpret_cast<void*>(repr)},
      {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
      {Py_tp_members, members},
      {Py_tp_getset, getset},
      {Py_tp_methods, methods},
      {0, nullptr},
  };
  PyType_Spec spec = {"hybridnet._core.DirectFunction", sizeof(DirectFunctionObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  direct_function_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (direct_function_type == nullptr) return -1;
  return PyModule_AddObjectRef(module, "DirectFunction", reinterpret_cast<PyObject*>(direct_function_type));
}

Owned make_direct_function(PyObject* function, PyObject* op, Py_ssize_t inputs, PyObject* names, Py_ssize_t needed,
                           bool tuple) {
  Owned self = checked(direct_function_type->tp_alloc(direct_function_type, 0));
  auto& f = *reinterpret_cast<DirectFunctionObject*>(self.get());
  f.vectorcall = call;
  f.function = Py_NewRef(function);
  f.op = Py_NewRef(op);
  f.call_op = PyVectorcall_Function(op);
  f.tuple = tuple;
  f.names = interned(names).release();
  f.dict = checked(PyDict_New()).release();
  f.inputs = inputs;
  f.needed = needed;
  return self;
}

}  // namespace hybridnet::python
