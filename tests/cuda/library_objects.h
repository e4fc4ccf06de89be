// Parts that the stand-ins of cuBLASLt and cuDNN share: the lock and the wanted failure of a call, objects that may be
// stale, and checks of memory.
// Threads: any; all but library_call() need world().mutex.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "driver.h"
#include "reports.h"
#include "world.h"

namespace standin {

// Objects of a type that exist.
template <class T>
std::map<const void*, std::unique_ptr<T>>& all() {
  static auto& it = *new std::map<const void*, std::unique_ptr<T>>;
  return it;
}

template <class T>
T* make_object(World& w, T value) {
  auto owned = std::make_unique<T>(std::move(value));
  T* const made = owned.get();
  all<T>()[made] = std::move(owned);
  ++w.counters.live_library_objects;
  return made;
}

// False, with a report, if there is no such object.
template <class T>
bool exists(const T* object, const char* function) {
  if (all<T>().count(object) != 0) return true;
  report(std::string("stale object: ") + function + " gets " + hex(reinterpret_cast<uintptr_t>(object)) +
         ", which does not exist");
  return false;
}

template <class T>
bool destroy_object(World& w, T* object, const char* function) {
  if (!exists(object, function)) return false;
  all<T>().erase(object);
  --w.counters.live_library_objects;
  return true;
}

// Runs the body of a library's function; the results are those of the library.
template <class Body>
int library_call(const char* function, int not_ready, int internal_error, Body body) {
  World& w = world();
  if (w.forked) return not_ready;
  std::lock_guard lock(w.mutex);
  if (w.ended) return not_ready;
  if (const Result wanted = injected_failure(function); wanted != kSuccess)
    return wanted == kUnknown ? internal_error : wanted;
  return body(w);
}

struct Bytes {
  uint64_t begin, end;
  bool meets(const Bytes& other) const { return begin < other.end && other.begin < end; }
};

// Whether these bytes belong to one allocation of the context's device; reports if not. name: "matrix A".
bool is_device_memory(World& w, const Bytes& bytes, const Context& context, const char* function,
                      const std::string& name);

}  // namespace standin
