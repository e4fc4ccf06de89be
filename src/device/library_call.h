// Work that a library of the device computes in place of our own kernels: products of matrices, convolutions.
// Threads: any. The work is in the order of the stream.
// Throws:  EngineError of the library, OutOfMemoryError for its workspace.
#pragma once

#include <cstdint>

#include "device/backend.h"
#include "device/last_launches.h"
#include "device/stream.h"
#include "hybridnet/storage.h"

namespace hybridnet::device {

// The state that a library prepares once for a layout.
struct LibraryPlan {
  virtual ~LibraryPlan() = default;
  int64_t workspace_bytes = 0;  // memory of the device that the work needs while it runs
};

// The interface to a library that the backend of this process implements; null if it does not.
template <class Library>
Library* library_of_backend() {
  static auto* const found = dynamic_cast<Library*>(backend());
  return found;
}

// Whether a library pays for work that our own kernel does in so many steps, one after the other.
bool pays_for_library(int64_t own_steps);

// The least own_steps of work that goes to a library. For tests and measurements; returns the number before.
int64_t set_least_library_steps(int64_t steps);

// Whether libraries may round factors of float32 to 10 bits and more (TF32); a setting of the process, false at first.
// Counts for work that is pushed afterwards. Returns the setting before.
bool allow_reduced_float32(bool allow);
bool reduces(DType dtype);  // true: dtype is float32, and it is allowed

// Calls push(workspace, stream) with memory for the plan, after the launches that this thread has collected: a
// library's work cannot be part of their graph. name: for errors that surface later.
template <class Push>
void push_to_library(const LibraryPlan& plan, const char* name, Push push) {
  Stream& stream = *current();
  // Temporary memory of the stream: its later users wait for the work, which waits for its earlier users.
  const OwnedBlock workspace(plan.workspace_bytes, stream.device());
  const Backend::Stream handle = stream.handle();  // pushes what was collected
  note_launch(name);
  push(workspace.data(), handle);
}

}  // namespace hybridnet::device
