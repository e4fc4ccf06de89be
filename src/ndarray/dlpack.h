// DLPack: how NumPy, PyTorch and JAX exchange tensors. The structures are those of the public dlpack.h, version 0.
#pragma once

#include <cstdint>
#include <functional>

#include "hybridnet/ndarray.h"

namespace hybridnet::dlpack {

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

// Shares the memory of an array, whose values must be computed already. The consumer of the tensor calls its deleter.
DLManagedTensor* export_array(const NDArray& array);
// An array over the memory of a contiguous tensor on the CPU; release: called once, when the last view of it dies.
// Throws for other tensors, without calling release.
NDArray import_array(const DLTensor& tensor, std::function<void()> release);

}  // namespace hybridnet::dlpack
