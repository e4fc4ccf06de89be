#include "c_api/status.h"

#include <new>
#include <string>

#include "hybridnet/c_api.h"

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
  } catch (const std::bad_alloc&) {  // the assignments below need no memory
    last_error().kind = "OutOfMemory";
    last_error().text.clear();
  }
}

void require(const void* p, const char* function, const char* argument) {
  if (p) return;
  throw ValueError({.op = function, .input = argument, .expected = "a valid pointer", .given = "NULL"});
}

}  // namespace hybridnet::c_api

using namespace hybridnet;  // the functions below are C: they have no namespace

const char* hn_last_error(void) { return c_api::last_error().text.c_str(); }
const char* hn_last_error_kind(void) { return c_api::last_error().kind.c_str(); }
