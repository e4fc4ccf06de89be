// Page-locked memory of the host, which devices read and write by themselves: arrays of cpu_pinned(i) lie in it where a
// GPU is. All devices use the same memory.
// Owner:   the process: the pool is made at first use and stays.
// Threads: any. A block that is freed while a device uses it is given out again when the device is done with it.
// Throws:  EngineError of the backend. Without page-locked memory, and in a forked child, blocks are ordinary memory,
//          whose `use` is null.
#pragma once

#include "device/backend.h"
#include "hybridnet/storage.h"

namespace hybridnet::device {

// A Backend whose devices copy from such memory implements this, too. Members use the current device of the thread.
class PinnedMemory {
 public:
  virtual void* allocate_pinned(int64_t bytes) = 0;  // null: there is none left
  virtual void free_pinned(void* memory) = 0;        // no copy of it may be unfinished
  // Returns at once: the device reads the memory when the stream comes to it.
  virtual void copy_in_pinned(Backend::Stream stream, void* to, const void* from, int64_t bytes) = 0;

 protected:
  ~PinnedMemory() = default;
};

PinnedMemory* pinned_memory();  // null: the process has no device, or one without such memory
Storage* pinned_storage();      // null: arrays of cpu_pinned(i) lie in ordinary memory

// Parts of before_fork() and after_fork() (pool.h).
void before_fork_of_pinned();
void after_fork_of_pinned();

}  // namespace hybridnet::device
