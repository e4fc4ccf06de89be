// The beginning of all functions of the driver's interface: one lock, the failure that a test wants, the checks of the
// process' state, and handles that may be stale.
// Threads: any.
#pragma once

#include <mutex>
#include <string>

#include "reports.h"
#include "results.h"
#include "world.h"

namespace standin {

// Runs the body of a driver function.
template <class Body>
Result call(const char* function, Body body) {
  World& w = world();
  if (w.forked) {
    report_in_child(std::string("fork: ") + function + " is called in a child of a process that has used the GPU");
    return kNotInitialized;
  }
  std::lock_guard lock(w.mutex);
  if (w.ended) return kDeinitialized;
  check_last_result(function);
  const auto run = [&]() -> Result {
    if (const Result wanted = injected_failure(function); wanted != kSuccess) return wanted;
    if (!w.initialized) return kNotInitialized;
    if (w.broken != kSuccess) return w.broken;
    return body(w);
  };
  return keep_result(function, run());
}

// The stream of a handle (null: the default stream of the current context). Null, with *result and a report, if the
// handle is stale or there is no context.
Stream* stream_of(World& w, void* handle, const char* function, Result* result);
Event* event_of(World& w, void* handle, const char* function);

// The allocation with all these bytes; null, and a report, if there is none or it is freed.
Allocation* allocation_of(World& w, uint64_t address, size_t bytes, const char* function);

}  // namespace standin
