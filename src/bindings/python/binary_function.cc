#include "binary_function.h"

#include <structmember.h>

#include <cstddef>

#include "array_arithmetic.h"
#include "array_object.h"
#include "control_bodies.h"
#include "hybridnet/imperative.h"
#include "op_function.h"
#include "symbol_object.h"

namespace hybridnet::python {
namespace {

struct BinaryFunctionObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  const OpInfo *arrays, *scalar, *reverse;
  const char *hint, *scalar_hint, *reverse_hint;  // stems of node names
  PyObject *name, *module;
};

PyTypeObject* binary_function_type = nullptr;

// Arguments of one call, borrowed.
struct Operands {
  PyObject *x1 = nullptr, *x2 = nullptr, *out = nullptr;
};

bool is_keyword(PyObject* key, const char* name) { return PyUnicode_CompareWithASCIIString(key, name) == 0; }

// False: something that only the fallback understands.
bool parse(PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames, Operands& o) {
  if (nargs > 3) return false;
  PyObject** const places[] = {&o.x1, &o.x2, &o.out};
  for (Py_ssize_t i = 0; i < nargs; ++i) *places[i] = args[i];
  const Py_ssize_t keywords = kwnames == nullptr ? 0 : PyTuple_GET_SIZE(kwnames);
  for (Py_ssize_t i = 0; i < keywords; ++i) {
    PyObject* key = PyTuple_GET_ITEM(kwnames, i);
    PyObject** place = is_keyword(key, "out")  ? &o.out
                       : is_keyword(key, "x1") ? &o.x1
                       : is_keyword(key, "x2") ? &o.x2
                                               : nullptr;
    if (place == nullptr || *place != nullptr) return false;
    *place = args[nargs + i];
  }
  if (o.out == Py_None) o.out = nullptr;
  return o.x1 != nullptr && o.x2 != nullptr && (o.out == nullptr || is_array(o.out));
}

PyObject* run(const OpInfo& info, const ParamsPtr& params, std::span<const NDArray> inputs, PyObject* out) {
  if (out == nullptr) return wrap_array(invoke_one(*info.op, params, inputs), np_class);
  check_write_in_body(array_of(out));
  invoke(*info.op, params, inputs, {&array_of(out), 1});
  return Py_NewRef(out);
}

PyObject* make_node_of(const OpInfo& info, ParamsPtr params, std::vector<NodeEntry> inputs, const char* hint) {
  Composition c;
  c.info = &info;
  c.params = std::move(params);
  c.inputs = std::move(inputs);
  c.hint = hint;
  c.result = numpy_symbol_class;
  return compose(std::move(c));
}

bool is_tensor(PyObject* object) { return is_array(object) || is_symbol(object); }

// Null without an error: the operands are for the fallback.
PyObject* apply(const BinaryFunctionObject& f, const Operands& o) {
  const bool symbolic = is_symbol(o.x1) || is_symbol(o.x2);
  if (is_tensor(o.x1) && is_tensor(o.x2)) {
    if (symbolic)
      return make_node_of(*f.arrays, f.arrays->op->default_params, {entry_of(o.x1, "x1"), entry_of(o.x2, "x2")},
                          f.hint);
    if (Py_TYPE(o.x1) != Py_TYPE(o.x2)) require_same_class(o.x1, o.x2, f.arrays->op->name);
    const NDArray inputs[] = {array_of(o.x1), array_of(o.x2)};
    return run(*f.arrays, f.arrays->op->default_params, inputs, o.out);
  }
  const bool reverse = is_tensor(o.x2);
  PyObject* tensor = reverse ? o.x2 : o.x1;
  double value = 0;
  bool is_int = false;
  if (!is_tensor(tensor) || !number_of(reverse ? o.x1 : o.x2, &value, &is_int)) return nullptr;
  const OpInfo& info = reverse ? *f.reverse : *f.scalar;
  const ParamsPtr params = info.scalar_params(value, is_int);
  if (symbolic) return make_node_of(info, params, {entry_of(tensor, "data")}, reverse ? f.reverse_hint : f.scalar_hint);
  return run(info, params, {&array_of(tensor), 1}, o.out);
}

PyObject* binary_call(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  const auto& function = *reinterpret_cast<BinaryFunctionObject*>(self);
  return guarded<PyObject*>(nullptr, [&] {
    const Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
    Operands operands;
    if (parse(args, nargs, kwnames, operands))
      if (PyObject* result = apply(function, operands)) return result;
    if (PyErr_Occurred()) throw PythonErrorIsSet();
    return call_numpy_fallback(self, args, nargs, kwnames);
  });
}

PyObject* binary_repr(PyObject* self) {
  const auto* function = reinterpret_cast<BinaryFunctionObject*>(self);
  return PyUnicode_FromFormat("<function %U.%U>", function->module, function->name);
}

PyObject* from_python(PyObject* self, const char* function) {
  Owned module(PyImport_ImportModule("hybridnet.ops._describe"));
  return module ? PyObject_CallMethod(module.get(), function, "O", self) : nullptr;
}
PyObject* get_doc(PyObject* self, void*) { return from_python(self, "binary_docstring"); }
PyObject* get_signature(PyObject* self, void*) { return from_python(self, "binary_signature"); }
PyObject* get_op_name(PyObject* self, void*) {
  return PyUnicode_FromString(reinterpret_cast<BinaryFunctionObject*>(self)->arrays->op->name.c_str());
}

// Pickles as the attribute of its module, like a Python function.
PyObject* binary_reduce(PyObject* self, PyObject*) {
  Owned module(PyImport_ImportModule("hybridnet.ops._describe"));
  Owned find(module ? PyObject_GetAttrString(module.get(), "find_function") : nullptr);
  const auto* function = reinterpret_cast<BinaryFunctionObject*>(self);
  return find ? Py_BuildValue("O(OO)", find.get(), function->module, function->name) : nullptr;
}

void binary_dealloc(PyObject* self) {
  auto* function = reinterpret_cast<BinaryFunctionObject*>(self);
  PyTypeObject* type = Py_TYPE(self);
  Py_XDECREF(function->name);
  Py_XDECREF(function->module);
  type->tp_free(self);
  Py_DECREF(type);
}

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(BinaryFunctionObject, vectorcall), READONLY, nullptr},
    {"__name__", T_OBJECT, offsetof(BinaryFunctionObject, name), READONLY, nullptr},
    {"__qualname__", T_OBJECT, offsetof(BinaryFunctionObject, name), READONLY, nullptr},
    {"__module__", T_OBJECT, offsetof(BinaryFunctionObject, module), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
PyGetSetDef getset[] = {
    {"__doc__", get_doc, nullptr, nullptr, nullptr},
    {"__signature__", get_signature, nullptr, nullptr, nullptr},
    {"op_name", get_op_name, nullptr, "Name in the registry of the operator for two arrays.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMethodDef methods[] = {
    {"__reduce__", binary_reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

// "_npi_add_scalar" -> "add_scalar"; the registry's strings outlive the function.
const char* hint_of(const OpInfo& info) {
  const std::string& name = info.op->name;
  return name.c_str() + (name.starts_with("_npi_") ? 5 : 0);
}

}  // namespace

int init_binary_function_type(PyObject* module) {
  PyType_Slot slots[] = {
      {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
      {Py_tp_repr, reinterpret_cast<void*>(binary_repr)},
      {Py_tp_dealloc, reinterpret_cast<void*>(binary_dealloc)},
      {Py_tp_members, members},
      {Py_tp_getset, getset},
      {Py_tp_methods, methods},
      {0, nullptr},
  };
  PyType_Spec spec = {"hybridnet._core.BinaryFunction", sizeof(BinaryFunctionObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, slots};
  binary_function_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (binary_function_type == nullptr) return -1;
  return PyModule_AddObjectRef(module, "BinaryFunction", reinterpret_cast<PyObject*>(binary_function_type));
}

Owned make_binary_function(const std::string& name, const std::string& module, const std::string& arrays,
                           const std::string& scalar, const std::string& reverse) {
  const OpInfo *with_arrays = &op_info(arrays), *with_scalar = &op_info(scalar), *reversed = &op_info(reverse);
  Owned self = checked(binary_function_type->tp_alloc(binary_function_type, 0));
  auto* function = reinterpret_cast<BinaryFunctionObject*>(self.get());
  function->vectorcall = binary_call;
  function->arrays = with_arrays;
  function->scalar = with_scalar;
  function->reverse = reversed;
  function->hint = hint_of(*with_arrays);
  function->scalar_hint = hint_of(*with_scalar);
  function->reverse_hint = hint_of(*reversed);
  function->name = PyUnicode_InternFromString(name.c_str());
  function->module = PyUnicode_InternFromString(module.c_str());
  if (function->name == nullptr || function->module == nullptr) throw PythonErrorIsSet();
  return self;
}

}  // namespace hybridnet::python
