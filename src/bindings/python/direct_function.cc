#include "direct_function.h"

#include <structmember.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "array_object.h"

namespace hybridnet::python {
namespace {

struct DirectFunctionObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject *function, *op;
  PyObject* names;         // tuple of interned strings
  PyObject* fixed_names;   // the same
  PyObject* fixed_values;  // tuple, one for each
  PyObject* dict;
  Py_ssize_t inputs, needed;
};

constexpr Py_ssize_t kMaxArguments = 12;

PyTypeObject* direct_function_type = nullptr;

Py_ssize_t position_of(PyObject* names, PyObject* name) {  // names of calls are interned
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); ++i)
    if (PyTuple_GET_ITEM(names, i) == name) return i;
  return -1;
}

// Arrays by position, then parameters that the operator has, among them those that it needs.
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
  return needed_given >= f.needed && nargs + keywords + PyTuple_GET_SIZE(f.fixed_names) <= kMaxArguments;
}

PyObject* call_operator(const DirectFunctionObject& f, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  const Py_ssize_t fixed = PyTuple_GET_SIZE(f.fixed_names);
  if (fixed == 0) return PyObject_Vectorcall(f.op, args, nargsf, kwnames);
  const Py_ssize_t nargs = PyVectorcall_NARGS(nargsf), keywords = kwnames == nullptr ? 0 : PyTuple_GET_SIZE(kwnames);
  std::array<PyObject*, kMaxArguments> all;
  PyObject** const end = std::copy(args, args + nargs + keywords, all.begin());
  std::copy_n(&PyTuple_GET_ITEM(f.fixed_values, 0), fixed, end);
  const Owned names(keywords == 0 ? Py_NewRef(f.fixed_names) : PySequence_Concat(kwnames, f.fixed_names));
  return names ? PyObject_Vectorcall(f.op, all.data(), static_cast<size_t>(nargs), names.get()) : nullptr;
}

PyObject* call(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  const auto& f = *reinterpret_cast<DirectFunctionObject*>(self);
  if (is_usual(f, args, PyVectorcall_NARGS(nargsf), kwnames)) {
    PyObject* result = call_operator(f, args, nargsf, kwnames);
    if (result != nullptr || !PyErr_ExceptionMatches(PyExc_Exception)) return result;
    PyErr_Clear();  // the function knows more kinds of arguments, or what to say
  }
  return PyObject_Vectorcall(f.function, args, nargsf, kwnames);
}

void dealloc(PyObject* self) {
  auto& f = *reinterpret_cast<DirectFunctionObject*>(self);
  for (PyObject* part : {f.function, f.op, f.names, f.fixed_names, f.fixed_values, f.dict}) Py_XDECREF(part);
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
                           PyObject* fixed) {
  const Owned keys = checked(PyDict_Keys(fixed)), values = checked(PyDict_Values(fixed));
  const Owned key_tuple = checked(PyList_AsTuple(keys.get()));
  Owned self = checked(direct_function_type->tp_alloc(direct_function_type, 0));
  auto& f = *reinterpret_cast<DirectFunctionObject*>(self.get());
  f.vectorcall = call;
  f.function = Py_NewRef(function);
  f.op = Py_NewRef(op);
  f.names = interned(names).release();
  f.fixed_names = interned(key_tuple.get()).release();
  f.fixed_values = checked(PyList_AsTuple(values.get())).release();
  f.dict = checked(PyDict_New()).release();
  f.inputs = inputs;
  f.needed = needed;
  return self;
}

}  // namespace hybridnet::python
