#include "trace_functions.h"

#include "array_object.h"
#include "symbol_object.h"
#include "text_of.h"

namespace hybridnet::python {
namespace {

// Returns str(factor), with a fast path because nearly all factors are 1.0.
std::string text_of_factor(PyObject* factor) {
  return PyFloat_CheckExact(factor) && PyFloat_AS_DOUBLE(factor) == 1.0 ? "1.0" : text_of(factor);
}

PyObject* set_trace_block(PyObject*, PyObject* path) {
  return guarded<PyObject*>(nullptr, [&] {
    Py_ssize_t size = 0;
    const char* utf8 = PyUnicode_AsUTF8AndSize(path, &size);
    if (utf8 == nullptr) throw PythonErrorIsSet();
    trace_state().block.assign(utf8, static_cast<size_t>(size));
    return Py_NewRef(Py_None);
  });
}

// Arguments: name, shape, dtype, numpy, lr_mult, wd_mult, storage, init.
constexpr Py_ssize_t kNumParameterArguments = 8;

PyObject* traced_parameter(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded<PyObject*>(nullptr, [&] {
    if (nargs != kNumParameterArguments)
      raise(ErrorKind::kType,
            {.expected = std::to_string(kNumParameterArguments) + " arguments", .given = std::to_string(nargs)});
    TensorSpec spec;
    if (args[1] != Py_None) spec.shape = shape_from(args[1], "shape");
    if (args[2] != Py_None) spec.dtype = dtype_from(args[2]);
    NodePtr variable = make_traced_variable(text_of(args[0]), spec);
    AttrDict& attrs = variable->attrs;  // filled in the order of its keys
    if (args[7] != Py_None) attrs.emplace_hint(attrs.end(), "__init__", text_of(args[7]));
    attrs.emplace_hint(attrs.end(), "__lr_mult__", text_of_factor(args[4]));
    attrs.emplace_hint(attrs.end(), "__storage_type__", text_of(args[6]));
    attrs.emplace_hint(attrs.end(), "__wd_mult__", text_of_factor(args[5]));
    const bool numpy = args[3] == Py_True && numpy_symbol_class != nullptr;
    Symbol symbol;
    symbol.outputs.push_back({std::move(variable), 0});
    return checked(wrap_symbol(std::move(symbol), numpy ? numpy_symbol_class : symbol_class)).release();
  });
}

PyMethodDef functions[] = {
    {"set_trace_block", set_trace_block, METH_O,
     "set_trace_block(path)\n--\n\nSets the path of the block whose forward runs in this thread's trace."},
    {"traced_parameter", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(traced_parameter)), METH_FASTCALL,
     "traced_parameter(name, shape, dtype, numpy, lr_mult, wd_mult, storage, init)\n--\n\nReturns the variable of a "
     "parameter, with the attributes that MXNet writes, because old tools read them. init: None or text."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

int init_trace_functions(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace hybridnet::python
