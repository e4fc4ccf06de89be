// Every failure is an Error with named fields; its text is composed from them (see what()).
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <string_view>

namespace hybridnet {

// The class that users catch. Python and Java have one class per kind, named by kind_name().
enum class ErrorKind : int8_t {
  kError,         // HybridNetError: none of the below
  kParam,         // ParamError: an operator or layer parameter is missing, unknown, or out of range
  kShape,         // ShapeError
  kDType,         // DTypeError
  kType,          // TypeError: an argument of the wrong kind
  kValue,         // ValueError
  kIndex,         // IndexError: index out of bounds
  kFormat,        // FormatError: a file or string violates its format
  kFile,          // FileError: missing, unreadable, unwritable
  kGradient,      // GradientError: not differentiable, overwritten in place, graph freed, not recorded
  kTrace,         // TraceError: code has read the value of a traced (abstract) array
  kDeferredInit,  // DeferredInitializationError
  kEngine,        // EngineError
  kMemory,        // OutOfMemoryError
  kUnsupported,   // UnsupportedError: valid, but not on this device, dtype, or in this build
  kGroup,         // GroupError: another process of the group died, stopped or disagrees
};
const char* kind_name(ErrorKind kind);

// The line of user code that made a call. `file` is interned, so it lives as long as the process, or is null.
struct SourceLocation {
  const char* file = nullptr;
  int32_t line = 0;
  bool known() const { return file != nullptr; }
  std::string str() const;  // "train.py:17"
};

// All fields have initializers, so that a throw may set only some of them without a compiler warning.
struct ErrorFields {
  std::string op = {};        // operator name: FullyConnected
  std::string node = {};      // node name: dense0_fwd
  std::string block = {};     // block path: net.body.0
  std::string input = {};     // input or parameter name: weight
  std::string expected = {};  // "shape (4, 5)"
  std::string given = {};     // "(4, 3)"
  std::string message = {};   // free text instead of expected/given, or before them
  std::string because = {};
  std::string fix = {};
  SourceLocation where = {};  // Python file:line of the call
};

class Error : public std::exception {
 public:
  Error(ErrorKind kind, ErrorFields fields);
  ErrorKind kind() const { return kind_; }
  const ErrorFields& fields() const { return fields_; }
  // Adds the fields that an outer layer knows (block path, node, location); fields already set stay.
  void add_context(const ErrorFields& outer);
  // "operator 'X' (node 'n', block 'b'), input 'w': expected .., got ..\n  Because: ..\n  Fix: ..\n  At: f.py:3"
  const char* what() const noexcept override;

 private:
  ErrorKind kind_;
  ErrorFields fields_;
  std::string text_;
};

#define HYBRIDNET_DECLARE_ERROR(Name, kind)                               \
  class Name : public Error {                                             \
   public:                                                                \
    explicit Name(ErrorFields fields) : Error(kind, std::move(fields)) {} \
  }
HYBRIDNET_DECLARE_ERROR(ParamError, ErrorKind::kParam);
HYBRIDNET_DECLARE_ERROR(ShapeError, ErrorKind::kShape);
HYBRIDNET_DECLARE_ERROR(DTypeError, ErrorKind::kDType);
HYBRIDNET_DECLARE_ERROR(TypeError, ErrorKind::kType);
HYBRIDNET_DECLARE_ERROR(ValueError, ErrorKind::kValue);
HYBRIDNET_DECLARE_ERROR(IndexError, ErrorKind::kIndex);
HYBRIDNET_DECLARE_ERROR(FormatError, ErrorKind::kFormat);
HYBRIDNET_DECLARE_ERROR(FileError, ErrorKind::kFile);
HYBRIDNET_DECLARE_ERROR(GradientError, ErrorKind::kGradient);
HYBRIDNET_DECLARE_ERROR(TraceError, ErrorKind::kTrace);
HYBRIDNET_DECLARE_ERROR(EngineError, ErrorKind::kEngine);
HYBRIDNET_DECLARE_ERROR(OutOfMemoryError, ErrorKind::kMemory);
HYBRIDNET_DECLARE_ERROR(UnsupportedError, ErrorKind::kUnsupported);
HYBRIDNET_DECLARE_ERROR(GroupError, ErrorKind::kGroup);
#undef HYBRIDNET_DECLARE_ERROR

// The user's line that the current thread executes; set by front ends around calls, read by the engine at push and by
// thrown errors. Cheap: two words in thread-local storage.
SourceLocation current_location();
SourceLocation set_current_location(SourceLocation where);  // returns the previous location
// While it lives, current_location() of this thread is `where`, known or not, and no probe is called: for work that a
// thread does for a call of another thread.
class LocationScope {
 public:
  explicit LocationScope(SourceLocation where);
  ~LocationScope();
  LocationScope(const LocationScope&) = delete;

 private:
  SourceLocation before_;
  bool probing_before_;
};
// Interns a file name; the pointer stays valid for the life of the process.
const char* intern_file(std::string_view file);

// Installed by front ends that find the user's line only at some cost (walking Python frames). current_location() calls
// it if no location was set explicitly. It must be cheap, must not throw, and runs on the pushing thread only.
using LocationProbe = SourceLocation (*)();
void set_location_probe(LocationProbe probe);

}  // namespace hybridnet
