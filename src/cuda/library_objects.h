// Calls and objects of the libraries that compute products and convolutions.
// Threads: as the library says.
#pragma once

#include <string>

#include "cuda/errors.h"
#include "cuda/symbol.h"

namespace hybridnet::cuda {

// A failed call of a library.
struct LibraryFailure {
  const char* function = nullptr;
  std::string status;          // its name and number
  std::string given;           // dtype and sizes
  const char* work = nullptr;  // "products": what HybridNet's own kernels compute, too
  bool is_of_device = false;   // an earlier kernel may be the cause
};
[[noreturn]] void throw_library_failure(const LibraryFailure& failure);  // EngineError

// Calls functions of a library on behalf of one product or convolution; describe() names it in errors.
template <class Library, class Call,
          LibraryFailure (*describe)(const Library& library, const Call& call, const char* function, Result status)>
class CheckedCalls {
 public:
  CheckedCalls(const Library& library, const Call& call) : library_(library), call_(call) {}
  template <class... Parameters, class... Arguments>
  void operator()(const Function<Result(Parameters...)>& function, Arguments... arguments) const {
    if (const Result status = function(arguments...); status != kSuccess) [[unlikely]]
      fail(function.name, status);
  }
  [[noreturn]] void fail(const char* function, Result status) const {
    throw_library_failure(describe(library_, call_, function, status));
  }

 private:
  const Library& library_;
  const Call& call_;
};

// An object of a library.
template <class Object>
class Owned {
 public:
  explicit Owned(const Function<Result(Object)>& destroy) : destroy_(&destroy) {}
  Owned(Owned&& other) noexcept : destroy_(other.destroy_), object_(other.object_) { other.object_ = nullptr; }
  ~Owned() {
    if (object_) static_cast<void>((*destroy_)(object_));  // nothing can be done about a failure
  }
  Owned(const Owned&) = delete;
  Object* place() { return &object_; }
  Object get() const { return object_; }

 private:
  const Function<Result(Object)>* destroy_;
  Object object_ = nullptr;
};

}  // namespace hybridnet::cuda
