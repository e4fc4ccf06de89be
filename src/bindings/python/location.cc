// Finds the user's line of the current call. This runs for every recorded or queued op, so facts about a code object or
// call site are cached: its file, and the line of an instruction. Each cache entry owns a reference to the object that
// is its key, so a recycled address cannot be mistaken for it.
#include "location.h"

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <frameobject.h>

#include <array>
#include <string_view>

#include "python_errors.h"

namespace hybridnet::python {
namespace {

constexpr size_t kCacheSize = 1024;  // power of two

struct FileEntry {
  PyObject* filename = nullptr;
  const char* interned = nullptr;
  bool internal = false;
};
struct LineEntry {
  PyObject* line_table = nullptr;
  int instruction = -1;
  int first_line = 0;
  int line = 0;
};

std::array<FileEntry, kCacheSize> files;
std::array<LineEntry, kCacheSize> lines;
std::string* package_prefix = nullptr;  // never destroyed: read by threads that outlive static destruction

size_t slot(const void* pointer, size_t salt = 0) {
  const auto bits = reinterpret_cast<uintptr_t>(pointer) + salt * 0x9e3779b97f4a7c15u;
  return (bits >> 4 ^ bits >> 14) & (kCacheSize - 1);
}

const FileEntry& file_of(PyCodeObject* code) {
  FileEntry& entry = files[slot(code->co_filename)];
  if (entry.filename == code->co_filename) return entry;
  Py_ssize_t size = 0;
  const char* text = PyUnicode_AsUTF8AndSize(code->co_filename, &size);
  if (text == nullptr) {
    PyErr_Clear();
    text = "<unknown>";
    size = 9;
  }
  const std::string_view name(text, static_cast<size_t>(size));
  Py_INCREF(code->co_filename);
  Py_XDECREF(entry.filename);
  entry.filename = code->co_filename;
  entry.interned = intern_file(name);
  entry.internal = package_prefix != nullptr && name.starts_with(*package_prefix);
  return entry;
}

int instruction_of(PyFrameObject* frame) {
#if PY_VERSION_HEX >= 0x030b0000
  return PyFrame_GetLasti(frame);
#else
  return frame->f_lasti;
#endif
}

int line_of(PyFrameObject* frame, PyCodeObject* code) {
#if PY_VERSION_HEX >= 0x030a0000
  PyObject* table = code->co_linetable;
#else
  PyObject* table = code->co_lnotab;
#endif
  const int instruction = instruction_of(frame);
  LineEntry& entry = lines[slot(table, static_cast<size_t>(instruction))];
  if (entry.line_table != table || entry.instruction != instruction || entry.first_line != code->co_firstlineno) {
    Py_INCREF(table);
    Py_XDECREF(entry.line_table);
    entry = {table, instruction, code->co_firstlineno, PyFrame_GetLineNumber(frame)};
  }
  return entry.line;
}

}  // namespace

SourceLocation python_location() {
  if (!PyGILState_Check()) return {};
  PyFrameObject* frame = PyEval_GetFrame();
  Py_XINCREF(frame);
  SourceLocation where;
  while (frame != nullptr) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    const FileEntry& file = file_of(code);
    if (!file.internal) where = {file.interned, line_of(frame, code)};
    Py_DECREF(code);
    PyFrameObject* back = where.known() ? nullptr : PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = back;
  }
  return where;
}

void warn_at_location(const std::string& text) {
  static PyObject* const shown = PyDict_New();  // warnings already shown: a warning registry without a module
  const SourceLocation where = python_location();
  if (shown == nullptr || PyErr_WarnExplicit(PyExc_UserWarning, text.c_str(), where.known() ? where.file : "<unknown>",
                                             where.line, nullptr, shown) != 0)
    throw PythonErrorIsSet();
}

void install_location_probe(const std::string& package_folder) {
  delete package_prefix;
  package_prefix = new std::string(package_folder);
  if (!package_prefix->ends_with('/')) *package_prefix += '/';
  set_location_probe(python_location);
}

}  // namespace hybridnet::python
