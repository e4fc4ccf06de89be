#include "binary_function.h"

#include "array_arithmetic.h"
#include "array_object.h"
#include "control_bodies.h"
#include "hybridnet/imperative.h"
#include "location.h"
#include "op_function.h"
#include "registry_function.h"
#include "symbol_object.h"
#include "traced_memory.h"

namespace hybridnet::python {
namespace {

struct BinaryFunctionObject : RegistryFunctionObject {
  const OpInfo *scalar, *reverse;
  const char *hint, *scalar_hint, *reverse_hint;  // stems of node names
};

PyTypeObject* binary_function_type = nullptr;

// Arguments of one call, borrowed.
struct Operands {
  PyObject *x1 = nullptr, *x2 = nullptr, *out = nullptr;
};

bool is_keyword(PyObject* key, const char* name) { return PyUnicode_CompareWithASCIIString(key, name) == 0; }

// Parses the arguments of a call. Returns false if they are for the fallback only.
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
  return o.x1 != nullptr && o.x2 != nullptr && (o.out == nullptr || is_array(o.out) || is_symbol(o.out));
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

// Throws TraceError if out= and the inputs do not match: traced results have no values to write to an array, and a
// traced array cannot hold the results of a call on arrays.
void check_out(const BinaryFunctionObject& f, const Operands& o, bool symbolic) {
  if (o.out == nullptr || is_symbol(o.out) == symbolic) return;
  raise(ErrorKind::kTrace, {.op = f.info->op->name,
                            .input = "out",
                            .expected = symbolic ? "a traced array" : "an array",
                            .given = symbolic ? "an array with values" : "a traced array",
                            .because = "the inputs have " + std::string(symbolic ? "no" : "their") +
                                       " values while the graph is being built",
                            .fix = "use the array that the call returns",
                            .where = python_location()});
}

bool is_tensor(PyObject* object) { return is_array(object) || is_symbol(object); }

// Returns null without an error if the operands are for the fallback.
PyObject* computed(const BinaryFunctionObject& f, const Operands& o) {
  const bool symbolic = is_symbol(o.x1) || is_symbol(o.x2);
  check_out(f, o, symbolic);
  if (is_tensor(o.x1) && is_tensor(o.x2)) {
    if (symbolic)
      return make_node_of(*f.info, f.info->op->default_params, {entry_of(o.x1, "x1"), entry_of(o.x2, "x2")}, f.hint);
    if (Py_TYPE(o.x1) != Py_TYPE(o.x2)) require_same_class(o.x1, o.x2, f.info->op->name);
    const NDArray inputs[] = {array_of(o.x1), array_of(o.x2)};
    return run(*f.info, f.info->op->default_params, inputs, o.out);
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

PyObject* apply(const BinaryFunctionObject& f, const Operands& o) {
  Owned result(computed(f, o));
  if (!result || o.out == nullptr || result.get() == o.out) return result.release();
  return write_outputs(o.out, std::move(result), true);
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

// Returns "add_scalar" for "_npi_add_scalar"; the registry's strings outlive the function.
const char* hint_of(const OpInfo& info) {
  const std::string& name = info.op->name;
  return name.c_str() + (name.starts_with("_npi_") ? 5 : 0);
}

}  // namespace

int init_binary_function_type(PyObject* module) {
  PyType_Slot slots[] = {{0, nullptr}};
  PyType_Spec spec = {"hybridnet._core.BinaryFunction", sizeof(BinaryFunctionObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL, slots};
  binary_function_type = make_registry_function_type(module, spec);
  return binary_function_type == nullptr ? -1 : 0;
}

Owned make_binary_function(const std::string& name, const std::string& module, const std::string& arrays,
                           const std::string& scalar, const std::string& reverse) {
  const OpInfo *with_arrays = &op_info(arrays), *with_scalar = &op_info(scalar), *reversed = &op_info(reverse);
  Owned self = make_registry_function(binary_function_type, binary_call, *with_arrays, name, module);
  auto* function = reinterpret_cast<BinaryFunctionObject*>(self.get());
  function->scalar = with_scalar;
  function->reverse = reversed;
  function->hint = hint_of(*with_arrays);
  function->scalar_hint = hint_of(*with_scalar);
  function->reverse_hint = hint_of(*reversed);
  return self;
}

}  // namespace hybridnet::python
