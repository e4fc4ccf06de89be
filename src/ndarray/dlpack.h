// DLPack: how NumPy, PyTorch and JAX exchange tensors. The structures are those of the public dlpack.h, version 0.
#pragma once

#include <cstdint>
#include <functional>

#include "hybridnet/ndarray.h"

namespace hybridnet::dlpack {

inline constexpr int32_t kCpu = 1, kCuda = 2, kCudaHost = 3;  // device types; pinned memory is of the CPU

struct DLDevice {
  int32_t device_type;
  int32_t device_id;
};
struct DLDataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(DLManagedTensor*);
};

// Shares the memory of an array, whose values must be computed already; on a GPU, the consumer's stream must follow the
// array's work instead (device/outside.h). The consumer of the tensor calls its deleter.
DLManagedTensor* export_array(const NDArray& array);
// An array over the memory of a contiguous tensor of the CPU or of CUDA; release: called once, when the last view of it
// dies and our work on it is done. The compute stream of a GPU must follow the tensor's work already; the other streams
// follow the compute stream. Throws for other tensors, without calling release.
NDArray import_array(const DLTensor& tensor, std::function<void()> release);
// The same for plain memory.
NDArray import_memory(void* data, const TensorSpec& spec, std::function<void()> release, Device device);

}  // namespace hybridnet::dlpack
