// str() of a Python object.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <string>

#include "python_errors.h"

namespace hybridnet::python {

inline std::string text_of(PyObject* object) {
  const Owned text = checked(PyObject_Str(object));
  Py_ssize_t size = 0;
  const char* utf8 = PyUnicode_AsUTF8AndSize(text.get(), &size);
  if (utf8 == nullptr) throw PythonErrorIsSet();
  return {utf8, static_cast<size_t>(size)};
}

}  // namespace hybridnet::python
