// Failures as exceptions: one class per kind, with the names and texts that Python users see.
#pragma once

// Every header of this folder includes this one first of all that use C++20.
#if __cplusplus < 201709L || !__has_include(<span>)  // 201709: -std=c++20 of GCC 10
#error \
    "HybridNet's C++ headers need C++20 (GCC 10, Clang 13 or later). Fix: compile with -std=c++20, or in CMake target_compile_features(app PRIVATE cxx_std_20). For older compilers there is the C interface, hybridnet/c_api.h."
// A missing file ends the compilation here, before the many errors that would follow from this one.
#include <hybridnet_needs_cpp20>
#endif

#include <stdexcept>
#include <string>
#include <utility>

#include "hybridnet/c_api.h"

namespace hybridnet::cpp {

// The base class of all errors; also thrown itself, for failures of none of the kinds below.
class Error : public std::runtime_error {
 public:
  Error(std::string kind, const std::string& text) : std::runtime_error(text), kind_(std::move(kind)) {}
  // "ShapeError", "FormatError", ...
  const std::string& kind() const { return kind_; }

 private:
  std::string kind_;
};

class ParamError : public Error {
 public:
  explicit ParamError(const std::string& text) : Error("ParamError", text) {}
};
class ShapeError : public Error {
 public:
  explicit ShapeError(const std::string& text) : Error("ShapeError", text) {}
};
class DTypeError : public Error {
 public:
  explicit DTypeError(const std::string& text) : Error("DTypeError", text) {}
};
class TypeError : public Error {
 public:
  explicit TypeError(const std::string& text) : Error("TypeError", text) {}
};
class ValueError : public Error {
 public:
  explicit ValueError(const std::string& text) : Error("ValueError", text) {}
};
class IndexError : public Error {
 public:
  explicit IndexError(const std::string& text) : Error("IndexError", text) {}
};
class FormatError : public Error {
 public:
  explicit FormatError(const std::string& text) : Error("FormatError", text) {}
};
class FileError : public Error {
 public:
  explicit FileError(const std::string& text) : Error("FileError", text) {}
};
class GradientError : public Error {
 public:
  explicit GradientError(const std::string& text) : Error("GradientError", text) {}
};
class TraceError : public Error {
 public:
  explicit TraceError(const std::string& text) : Error("TraceError", text) {}
};
class DeferredInitializationError : public Error {
 public:
  explicit DeferredInitializationError(const std::string& text) : Error("DeferredInitializationError", text) {}
};
class EngineError : public Error {
 public:
  explicit EngineError(const std::string& text) : Error("EngineError", text) {}
};
class GroupError : public Error {  // another process of the group died, stopped or disagrees
 public:
  explicit GroupError(const std::string& text) : Error("GroupError", text) {}
};
class OutOfMemoryError : public Error {
 public:
  explicit OutOfMemoryError(const std::string& text) : Error("OutOfMemoryError", text) {}
};
class UnsupportedError : public Error {
 public:
  explicit UnsupportedError(const std::string& text) : Error("UnsupportedError", text) {}
};

namespace detail {

template <typename Kind, typename... Others>
[[noreturn]] void throw_as(const std::string& kind, const std::string& text) {
  Kind error(text);
  if (error.kind() == kind) throw error;
  if constexpr (sizeof...(Others) > 0)
    throw_as<Others...>(kind, text);
  else
    throw Error(kind, text);
}

// Throws the last failure of this thread.
[[noreturn]] inline void throw_last_error() {
  throw_as<ParamError, ShapeError, DTypeError, TypeError, ValueError, IndexError, FormatError, FileError, GradientError,
           TraceError, DeferredInitializationError, EngineError, GroupError, OutOfMemoryError, UnsupportedError>(
      hn_last_error_kind(), hn_last_error());
}

inline void check(int status) {
  if (status != 0) throw_last_error();
}

}  // namespace detail
}  // namespace hybridnet::cpp
