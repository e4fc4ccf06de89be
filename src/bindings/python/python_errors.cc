#include "python_errors.h"

#include <cxxabi.h>
#include <pybind11/pybind11.h>
#include <unistd.h>

#include <new>
#include <stdexcept>

#include "location.h"

namespace hybridnet::python {
namespace {

// Returns the class of this name in hybridnet.errors; a new reference or null.
PyObject* error_class(const char* name) {
  Owned module(PyImport_ImportModule("hybridnet.errors"));
  if (!module) return nullptr;
  return PyObject_GetAttrString(module.get(), name);
}

void set_field(PyObject* exception, const char* name, const std::string& text) {
  Owned value(text.empty() ? Py_NewRef(Py_None)
                           : PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
  if (!value || PyObject_SetAttrString(exception, name, value.get()) < 0) PyErr_Clear();
}

void set_hybridnet_error(const Error& error) {
  Owned cls(error_class(kind_name(error.kind())));
  const char* what = error.what();
  Owned text(PyUnicode_DecodeUTF8(what, static_cast<Py_ssize_t>(std::strlen(what)), "replace"));
  if (!cls || !text) return;
  Owned exception(PyObject_CallOneArg(cls.get(), text.get()));
  if (!exception) return;
  const ErrorFields& f = error.fields();
  set_field(exception.get(), "op", f.op);
  set_field(exception.get(), "node", f.node);
  set_field(exception.get(), "block", f.block);
  set_field(exception.get(), "input", f.input);
  set_field(exception.get(), "expected", f.expected);
  set_field(exception.get(), "given", f.given);
  set_field(exception.get(), "because", f.because);
  set_field(exception.get(), "fix", f.fix);
  set_field(exception.get(), "where", f.where.known() ? f.where.str() : std::string());
  PyErr_SetObject(cls.get(), exception.get());
}

// Number of this thread's ReleaseGil objects that need the user's line; the outermost one records and clears it.
thread_local int location_depth = 0;

}  // namespace

void set_error_from_exception() noexcept {
  try {
    throw;
  } catch (const StoppedByPython& stopped) {
    stopped.restore();
  } catch (const PythonErrorIsSet&) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_SystemError, "hybridnet: an error was announced but not set");
  } catch (Error& error) {
    if (!error.fields().where.known()) {
      ErrorFields here;
      here.where = python_location();
      error.add_context(here);
    }
    set_hybridnet_error(error);
  } catch (pybind11::error_already_set& error) {
    error.restore();
  } catch (pybind11::builtin_exception& error) {
    error.set_error();
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "hybridnet: unknown C++ exception");
  }
}

void raise(ErrorKind kind, ErrorFields fields) { throw Error(kind, std::move(fields)); }

std::string short_repr(PyObject* object) {
  Owned text(PyObject_Repr(object));
  Py_ssize_t size = 0;
  const char* utf8 = text ? PyUnicode_AsUTF8AndSize(text.get(), &size) : nullptr;
  if (utf8 == nullptr) {
    PyErr_Clear();
    return "<" + type_name(object) + ">";
  }
  constexpr size_t kLongest = 120;
  std::string result(utf8, static_cast<size_t>(size));
  if (result.size() > kLongest) {
    size_t end = kLongest - 3;
    while (end > 0 && (result[end] & 0xC0) == 0x80) --end;  // not inside a UTF-8 sequence
    result = result.substr(0, end) + "...";
  }
  return result;
}

std::string type_name(PyObject* object) { return Py_TYPE(object)->tp_name; }

namespace {

template <typename Ask>
auto answered_or_asleep(Ask ask) noexcept {
  try {
    return ask();
  } catch (abi::__forced_unwind&) {
    for (;;) pause();  // leaving this block would end the process
  }
}

}  // namespace

void restore_thread_or_sleep(PyThreadState* state) noexcept {
  answered_or_asleep([state] { PyEval_RestoreThread(state); });
}

PyGILState_STATE ensure_gil_or_sleep() noexcept { return answered_or_asleep(PyGILState_Ensure); }

ReleaseGil::ReleaseGil(bool pushes_work) {
  if (pushes_work && location_depth++ == 0) {
    noted_location_ = true;
    set_current_location(python_location());
  }
  state_ = PyEval_SaveThread();
}

ReleaseGil::~ReleaseGil() {
  restore_thread_or_sleep(state_);
  if (noted_location_) {
    location_depth = 0;
    set_current_location({});
  }
}

}  // namespace hybridnet::python
