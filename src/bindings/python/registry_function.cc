#include "registry_function.h"

#include <structmember.h>

#include <cstddef>
#include <cstring>

namespace hybridnet::python {
namespace {

PyTypeObject* registry_function_type = nullptr;

RegistryFunctionObject& function_of(PyObject* self) { return *reinterpret_cast<RegistryFunctionObject*>(self); }

PyObject* from_python(PyObject* self, void* function) {
  Owned module(PyImport_ImportModule("hybridnet.ops._describe"));
  return module ? PyObject_CallMethod(module.get(), static_cast<const char*>(function), "O", self) : nullptr;
}

PyObject* get_op_name(PyObject* self, void*) { return PyUnicode_FromString(function_of(self).info->op->name.c_str()); }

PyObject* repr(PyObject* self) {
  return PyUnicode_FromFormat("<operator %U.%U>", function_of(self).module, function_of(self).name);
}

// Pickles as the attribute of its module, like a Python function.
PyObject* reduce(PyObject* self, PyObject*) {
  Owned module(PyImport_ImportModule("hybridnet.ops._describe"));
  Owned find(module ? PyObject_GetAttrString(module.get(), "find_function") : nullptr);
  return find ? Py_BuildValue("O(OO)", find.get(), function_of(self).module, function_of(self).name) : nullptr;
}

void dealloc(PyObject* self) {
  Py_XDECREF(function_of(self).name);
  Py_XDECREF(function_of(self).module);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

char docstring[] = "docstring", signature[] = "signature";  // functions of hybridnet.ops._describe

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(RegistryFunctionObject, vectorcall), READONLY, nullptr},
    {"__name__", T_OBJECT, offsetof(RegistryFunctionObject, name), READONLY, nullptr},
    {"__qualname__", T_OBJECT, offsetof(RegistryFunctionObject, name), READONLY, nullptr},
    {"__module__", T_OBJECT, offsetof(RegistryFunctionObject, module), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
PyGetSetDef getset[] = {
    {"__doc__", from_python, nullptr, nullptr, docstring},
    {"__signature__", from_python, nullptr, nullptr, signature},
    {"op_name", get_op_name, nullptr, "Name in the registry and in files.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMethodDef methods[] = {
    {"__reduce__", reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

int init_registry_function_type(PyObject* module) {
  PyType_Slot slots[] = {
      {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
      {Py_tp_repr, reinterpret_cast<void*>(repr)},
      {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
      {Py_tp_members, members},
      {Py_tp_getset, getset},
      {Py_tp_methods, methods},
      {0, nullptr},
  };
  PyType_Spec spec = {
      "hybridnet._core.RegistryFunction", sizeof(RegistryFunctionObject), 0,
      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  registry_function_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (registry_function_type == nullptr) return -1;
  return PyModule_AddObjectRef(module, "RegistryFunction", reinterpret_cast<PyObject*>(registry_function_type));
}

PyTypeObject* make_registry_function_type(PyObject* module, PyType_Spec& spec) {
  Owned bases(PyTuple_Pack(1, registry_function_type));
  if (!bases) return nullptr;
  Owned type(PyType_FromSpecWithBases(&spec, bases.get()));
  // Python sets __doc__ on every type, which would hide the inherited one.
  Owned doc(PyObject_GetAttrString(reinterpret_cast<PyObject*>(registry_function_type), "__doc__"));
  if (!type || !doc || PyObject_SetAttrString(type.get(), "__doc__", doc.get()) < 0 ||
      PyModule_AddObjectRef(module, std::strrchr(spec.name, '.') + 1, type.get()) < 0)
    return nullptr;
  return reinterpret_cast<PyTypeObject*>(type.release());
}

Owned make_registry_function(PyTypeObject* type, vectorcallfunc call, const OpInfo& info, const std::string& name,
                             const std::string& module) {
  Owned self = checked(type->tp_alloc(type, 0));
  RegistryFunctionObject& function = function_of(self.get());
  function.vectorcall = call;
  function.info = &info;
  function.name = PyUnicode_InternFromString(name.c_str());
  function.module = PyUnicode_InternFromString(module.c_str());
  if (function.name == nullptr || function.module == nullptr) throw PythonErrorIsSet();
  return self;
}

}  // namespace hybridnet::python
