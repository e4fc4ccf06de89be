// _fused_elementwise on a device: one kernel for the chain, made at its first run. Steps that cannot be merged (they do
// more than functions of kernels/elementwise/pointwise.h, or have too many parameters) run one by one.
// Owner:   the kernel of the node.
// Threads: run() from any thread, with device::current() set.
// Throws:  DeviceError, OutOfMemoryError.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "hybridnet/op.h"
#include "kernels/elementwise/device_fused.h"
#include "op/pointwise_program.h"

namespace hybridnet::ops {

class DeviceChain {
 public:
  DeviceChain(const PointwiseProgram& program, DType dtype, std::vector<kernels::FusedInput> inputs)
      : program_(program), dtype_(dtype), inputs_(std::move(inputs)) {}
  void run(const KernelArgs& args, int64_t n);
  // Whether every step of a program has a form for devices.
  static bool runs_everywhere(const PointwiseProgram& program, const LinkContext& context);

 private:
  void merge();
  void run_steps(const KernelArgs& args, int64_t n) const;
  void run_step(size_t step, const std::vector<void*>& slots, int64_t n) const;

  const PointwiseProgram& program_;  // belongs to the kernel
  const DType dtype_;
  const std::vector<kernels::FusedInput> inputs_;
  std::once_flag merged_;
  std::unique_ptr<kernels::FusedChain> chain_;  // null: the steps run one by one
};

}  // namespace hybridnet::ops
