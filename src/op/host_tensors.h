// The tensors of a kernel on a GPU as copies in memory of the CPU, for a kernel of the CPU that runs on them.
// Owner:   the run of a kernel.
// Threads: one. Copies are in the order of the stream and wait for it.
// Throws:  OutOfMemoryError; EngineError of the driver.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "device/stream.h"
#include "hybridnet/kernel.h"
#include "hybridnet/storage.h"

namespace hybridnet {

class HostTensors {
 public:
  explicit HostTensors(std::span<const TensorRef> tensors);  // with room for the values; null data stays null
  HostTensors(const HostTensors&) = delete;

  std::span<TensorRef> refs() { return refs_; }
  void copy_from(device::Stream& stream, std::span<const TensorRef> tensors);
  void copy_to(device::Stream& stream, std::span<const TensorRef> tensors) const;

 private:
  std::vector<TensorRef> refs_;
  std::vector<std::unique_ptr<OwnedBlock>> blocks_;
};

// Runs a kernel of the CPU on these tensors, with all else of `args`, on a thread that runs kernels of a GPU.
void run_on_host(Kernel& kernel, const KernelArgs& args, std::span<const TensorRef> in, std::span<const TensorRef> out);

// The context for linking the CPU's kernel of a use on a GPU, which runs on copies.
LinkContext on_host(const LinkContext& c);

}  // namespace hybridnet
