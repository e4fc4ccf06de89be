// Copies from the host's memory to a device that need not be waited for: the bytes go through a ring of page-locked
// memory, so the caller may reuse its own at once. A part of the ring is reused when its copy is done. (The driver's
// copy from pageable memory may read it after its function has returned: it does on systems with coherent memory.)
// Owner:   a Staging belongs to its device. release() returns its memory; the destructor makes no driver call.
// Threads: any, one at a time; the device is the thread's current one.
// Throws:  DeviceError. Without page-locked memory copies are waited for.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "cuda/driver.h"

namespace hybridnet::cuda {

class Staging {
 public:
  explicit Staging(const Driver& driver) : driver_(driver) {}
  Staging(const Staging&) = delete;

  void copy_in(StreamHandle stream, Pointer to, const void* from_host, size_t bytes);
  void release() noexcept;

 private:
  struct Pending {
    uint64_t end;  // in the unit of head_
    EventHandle event;
  };
  bool prepare();
  void copy_part(StreamHandle stream, Pointer to, const char* from, size_t bytes);
  char* take(size_t bytes);
  void retire_oldest();
  void retire_done();
  EventHandle new_event();

  const Driver& driver_;
  std::mutex mutex_;
  char* ring_ = nullptr;
  bool failed_ = false;              // there is no page-locked memory
  uint64_t head_ = 0, tail_ = 0;     // bytes ever taken, and ever given back; the difference is in use
  std::deque<Pending> pending_;      // in the order of the ring
  std::vector<EventHandle> spares_;  // events of copies that are done
};

}  // namespace hybridnet::cuda
