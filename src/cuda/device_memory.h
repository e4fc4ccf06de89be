// Memory of a device from the driver. Where the driver has memory pools it comes from the device's default pool, which
// cupy.cuda.MemoryAsyncPool() and other libraries use, too: what one of them frees, another can take without the memory
// going back to the system in between. Elsewhere it comes from cuMemAlloc.
// Owner:   CudaBackend, one for each device.
// Threads: any; the device is the thread's current one.
#pragma once

#include <atomic>
#include <cstddef>
#include <mutex>

#include "cuda/driver.h"
#include "cuda/errors.h"

namespace hybridnet::cuda {

// The result of a call of the driver, with the function's name for the report of a failure.
struct Outcome {
  Result result = kSuccess;
  const char* function = "";
  bool failed() const { return result != kSuccess; }
};

class DeviceMemory {
 public:
  DeviceMemory(const Driver& driver, DeviceNumber device);

  Outcome allocate(Pointer* memory, size_t bytes);  // all streams can use it at once
  Outcome free(Pointer memory);                     // no work on it may be unfinished; a failure leaves it as it was
  void release() noexcept;                          // before the context goes; all memory has been freed

 private:
  Outcome prepare_stream();

  const Driver& driver_;
  const bool has_pool_;
  std::mutex making_;
  std::atomic<StreamHandle> stream_{nullptr};  // orders allocations and frees; no other work is pushed to it
};

}  // namespace hybridnet::cuda
