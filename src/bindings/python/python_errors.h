// C++ errors become Python exceptions here, and only here.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <string>
#include <utility>

#include "hybridnet/error.h"

namespace hybridnet::python {

// Thrown where the interpreter's error indicator is set already, to unwind to guarded().
struct PythonErrorIsSet {};

// Thrown by Python code that C++ has called to stop the program (KeyboardInterrupt, SystemExit): no std::exception, so
// that nothing on the way takes it for a failure of its own.
class StoppedByPython {
 public:
  virtual ~StoppedByPython() = default;
  virtual void restore() const noexcept = 0;  // sets the interpreter's error indicator
};

// Turns the exception in flight into the Python exception of its kind (hybridnet.errors), fields as attributes.
// Call from a catch block, with the GIL held.
void set_error_from_exception() noexcept;

// Raises hybridnet.errors.<kind> from Python code paths that have no C++ exception yet.
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

// Text of an exception that Python code raised, cleared from the indicator; for callbacks that C++ calls.
std::string take_python_error();

// repr() of an object for error texts, cut to a readable length; never fails.
std::string short_repr(PyObject* object);
// Name of the object's type for error texts: "list", "hybridnet.ndarray.NDArray".
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

// A new reference or PythonErrorIsSet.
inline Owned checked(PyObject* p) {
  if (p == nullptr) throw PythonErrorIsSet();
  return Owned(p);
}
inline void checked_status(int status) {
  if (status < 0) throw PythonErrorIsSet();
}

// Python ends a thread that asks for the GIL when the interpreter is over, by unwinding its stack: through frames that
// must not throw, and through destructors that need the GIL. These two let it sleep instead; the process is about to
// end.
void restore_thread_or_sleep(PyThreadState* state) noexcept;
PyGILState_STATE ensure_gil_or_sleep() noexcept;

// Lets other Python threads run while C++ works or waits.
class ReleaseGil {
 public:
  // pushes_work: ops may be pushed meanwhile, so the user's line is noted first; frames cannot be read without the GIL.
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
