// Pooled, 64-byte aligned memory per device.
// Owner:   Runtime.
// Threads: every member is safe from any thread; small blocks come from a thread-local cache without a lock.
// Throws:  allocate() and storage(); the other members do not.
#pragma once

#include <cstdint>
#include <memory>

#include "hybridnet/base.h"
#include "storage/derived.h"

namespace hybridnet {

namespace device {
class StreamUse;
}

class Storage {
 public:
  struct Block {
    void* data = nullptr;  // 64-byte aligned; null when bytes == 0
    int64_t bytes = 0;     // usable bytes (>= requested)
    Device device;
    device::StreamUse* use = nullptr;  // the unfinished work on memory of a GPU (device/stream.h)
  };
  struct Statistics {
    int64_t in_use = 0;       // bytes of allocated blocks
    int64_t pooled = 0;       // bytes held for reuse
    int64_t peak_in_use = 0;  // since start or reset_peak(); blocks up to 64 KiB: to within 64 KiB per thread
    int64_t system_allocations = 0;
    int64_t allocations = 0;
    int64_t derived = 0;  // bytes in in_use that are copies derived from arrays (derived.h)
  };
  virtual ~Storage() = default;
  virtual Block allocate(int64_t bytes) = 0;  // throws OutOfMemoryError with sizes and statistics
  virtual void free(Block block) = 0;         // back to the pool
  virtual void release_pool() = 0;            // empty_cache: pooled memory goes back to the system
  virtual Statistics statistics() const = 0;
  virtual void reset_peak() = 0;
  virtual DerivedBudget& derived_budget() = 0;
  // Called around a fork, on the thread that forks, so that the pool is consistent in the child. Registered by Runtime.
  virtual void before_fork() = 0;
  virtual void after_fork(bool in_child) = 0;
};
std::unique_ptr<Storage> make_cpu_storage();                    // pool limit from the environment
std::unique_ptr<Storage> make_cpu_storage(int64_t pool_limit);  // bytes kept for reuse; below 0: no limit

// The process' storage of a device; throws UnsupportedError for a missing device. Runtime installs the CPU's storage.
Storage& storage(Device device);
void set_cpu_storage(Storage* s);
void set_gpu_storage(Storage& (*find)(Device));

// A block that returns to the storage of its device.
// Owner:   its holder.
// Threads: any thread may free it.
// Throws:  the constructor throws OutOfMemoryError.
class OwnedBlock {
 public:
  explicit OwnedBlock(int64_t bytes, Device device = {}) : block_(storage(device).allocate(bytes)) {}
  ~OwnedBlock() {
    if (block_.data) storage(block_.device).free(block_);
  }
  OwnedBlock(const OwnedBlock&) = delete;
  void* data() const { return block_.data; }

 private:
  const Storage::Block block_;
};

}  // namespace hybridnet
