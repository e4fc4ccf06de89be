// Conversion of exceptions to status codes, done only here.
#pragma once

#include <exception>
#include <new>

#include "hybridnet/error.h"
#include "hybridnet/runtime.h"

namespace hybridnet::c_api {

void set_last_error(const char* kind, const char* text) noexcept;

// Runs f. Returns 0; if f throws, returns -1 and keeps the error for hn_last_error().
template <typename F>
int guarded(F&& f) {
  try {
    Runtime::get();
    f();
    return 0;
  } catch (const Error& error) {
    set_last_error(kind_name(error.kind()), error.what());
  } catch (const std::bad_alloc&) {
    set_last_error("OutOfMemoryError", "out of memory");
  } catch (const std::exception& error) {
    set_last_error("HybridNetError", error.what());
  } catch (...) {
    set_last_error("HybridNetError", "an exception that is no std::exception");
  }
  return -1;
}

// Throws ValueError naming the argument when p is null.
void require(const void* p, const char* function, const char* argument);

}  // namespace hybridnet::c_api
