#include "c_api/status.h"

#include <new>
#include <string>

#include "hybridnet/c_api.h"
#include "hybridnet/threads.h"
#include "kernels/isa.h"

extern "C" const char* hybridnet_version();  // made by CMake from the one place that holds it

namespace hybridnet::c_api {
namespace {

struct LastError {
  std::string kind, text;
};
LastError& last_error() {
  thread_local LastError e;
  return e;
}

}  // namespace

void set_last_error(const char* kind, const char* text) noexcept {
  try {
    last_error() = {kind, text};
  } catch (const std::bad_alloc&) {  // short enough to need no memory
    last_error().kind = "OutOfMemory";
    last_error().text.clear();
  }
}

void require(const void* p, const char* function, const char* argument) {
  if (p) return;
  throw ValueError({.op = function, .input = argument, .expected = "a valid pointer", .given = "NULL"});
}

}  // namespace hybridnet::c_api

using namespace hybridnet;  // the functions below are C: they have no namespace of their own

const char* hn_last_error(void) { return c_api::last_error().text.c_str(); }
const char* hn_last_error_kind(void) { return c_api::last_error().kind.c_str(); }
const char* hn_version(void) { return hybridnet_version(); }
const char* hn_isa(void) { return kernels::isa_report(); }
int hn_wait_all(void) {
  return c_api::guarded([] { Runtime::get().engine().wait_all(); });
}
int hn_set_num_threads(int cores) {
  return c_api::guarded([&] {
    if (cores < 1)
      throw ValueError(
          {.op = "hn_set_num_threads", .input = "cores", .expected = "at least 1", .given = std::to_string(cores)});
    set_cpu_cores(cores);
  });
}
