// Tasks on arrays of GPUs: their order on the device, and copies between devices.
// Owner:   the task.
// Threads: see NDArray.
// Throws:  EngineError of the driver; copies also what making memory throws.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "device/stream.h"
#include "hybridnet/ndarray.h"

namespace hybridnet {

// While it lives, kernels of this thread run on the GPU of the arrays, after the work that the arrays have to wait for;
// later work on the arrays follows. For arrays of a CPU it does nothing. Null handles are skipped.
class DeviceWork {
 public:
  DeviceWork(std::span<const NDArray> reads, std::span<const NDArray> writes);
  ~DeviceWork();
  DeviceWork(const DeviceWork&) = delete;

 private:
  void begin(device::Stream& stream, std::span<const NDArray> reads, std::span<const NDArray> writes);
  device::Stream* stream_ = nullptr;
  std::vector<device::StreamUse*> reads_, writes_;
  std::optional<device::Scope> scope_;
};

// Copies values to an array of the same spec, at least one of them on a GPU, as a task of the engine.
void copy_between_devices(const NDArray& from, const NDArray& to);
// A copy on another device, made by a task; not recorded.
NDArray copy_on(const NDArray& array, Device device);
// The array itself if it is on a CPU; else a copy there, whose values are known on return.
NDArray on_cpu(const NDArray& array);

// Waits until the values of an array on a GPU are computed, after the engine has pushed the work.
void wait_for_device(const NDArray& array, bool for_readers_too);
// The parts of NDArray::copy_from and copy_to for GPUs: return when host memory may be used.
void copy_in_now(const NDArray& to, const void* source);
void copy_out_now(const NDArray& from, void* target);

}  // namespace hybridnet
