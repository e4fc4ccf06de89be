// Conversion of C++ errors to Python exceptions, done only here.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <string>
#include <utility>

#include "hybridnet/error.h"

namespace hybridnet::python {

// Thrown when the interpreter's error indicator is already set, to unwind to guarded().
struct PythonErrorIsSet {};

// Thrown when Python code called by C++ stops the program (KeyboardInterrupt, SystemExit). It is not a std::exception,
// so that no handler on the way treats it as an ordinary failure.
class StoppedByPython {
 public:
  virtual ~StoppedByPython() = default;
  virtual void restore() const noexcept = 0;  // sets the interpreter's error indicator
};

// Converts the current exception to the Python exception of its kind (hybridnet.errors), with fields as attributes.
// Call from a catch block, with the GIL held.
void set_error_from_exception() noexcept;

// Throws a C++ error that becomes hybridnet.errors.<kind> in Python.
[[noreturn]] void raise(ErrorKind kind, ErrorFields fields);

// Runs f; exceptions become the error indicator and `failure` is returned.
template <typename R, typename F>
R guarded(R failure, F&& f) noexcept {
  try {
    return f();
  } catch (...) {
    set_error_from_exception();
    return failure;
  }
}

// Returns repr() of an object for error texts, cut to a readable length; never fails.
std::string short_repr(PyObject* object);
// Returns the name of the object's type for error texts: "list", "hybridnet.ndarray.NDArray".
std::string type_name(PyObject* object);

// Owned reference; null is allowed. Lighter than pybind11's object and without its GIL checks.
class Owned {
 public:
  Owned() = default;
  explicit Owned(PyObject* p) : p_(p) {}
  Owned(Owned&& o) noexcept : p_(o.p_) { o.p_ = nullptr; }
  Owned& operator=(Owned&& o) noexcept {
    std::swap(p_, o.p_);
    return *this;
  }
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() { Py_XDECREF(p_); }
  static Owned borrowed(PyObject* p) {
    Py_XINCREF(p);
    return Owned(p);
  }
  PyObject* get() const { return p_; }
  PyObject* release() { return std::exchange(p_, nullptr); }
  explicit operator bool() const { return p_ != nullptr; }

 private:
  PyObject* p_ = nullptr;
};

// Takes a new reference; throws PythonErrorIsSet if it is null.
inline Owned checked(PyObject* p) {
  if (p == nullptr) throw PythonErrorIsSet();
  return Owned(p);
}

// Python ends a thread that requests the GIL after the interpreter has ended, by unwinding its stack: through frames
// that must not throw, and through destructors that need the GIL. These two functions let the thread sleep instead; the
// process is about to end.
void restore_thread_or_sleep(PyThreadState* state) noexcept;
PyGILState_STATE ensure_gil_or_sleep() noexcept;

// Lets other Python threads run while C++ works or waits.
class ReleaseGil {
 public:
  // pushes_work: ops may be pushed without the GIL, where frames cannot be read, so the user's line is recorded first.
  explicit ReleaseGil(bool pushes_work);
  ~ReleaseGil();
  ReleaseGil(const ReleaseGil&) = delete;

 private:
  PyThreadState* state_;
  bool noted_location_ = false;
};

class AcquireGil {
 public:
  AcquireGil() : state_(ensure_gil_or_sleep()) {}
  ~AcquireGil() { PyGILState_Release(state_); }
  AcquireGil(const AcquireGil&) = delete;

 private:
  PyGILState_STATE state_;
};

}  // namespace hybridnet::python
