// The work of one run of a plan on the GPU of its arrays; nothing for a plan of the CPU.
// Owner: the block that runs the plan.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <vector>

#include "device/launch_batch.h"
#include "ndarray/device_work.h"
#include "plan/plan.h"

namespace hybridnet {

class PlanWork {
 public:
  // captured: arrays that the graph reads beside its inputs; null: none. written: outputs and other memory.
  PlanWork(const Plan& plan, std::span<const NDArray> inputs, const std::vector<NDArray>* captured,
           std::initializer_list<std::span<const NDArray>> written) {
    if (plan.device().type != DeviceType::kGPU) return;
    std::vector<NDArray> reads(inputs.begin(), inputs.end()), writes;
    if (captured) reads.insert(reads.end(), captured->begin(), captured->end());
    for (const std::span<const NDArray> arrays : written) writes.insert(writes.end(), arrays.begin(), arrays.end());
    for (const int input : plan.written_inputs()) writes.push_back(inputs[static_cast<size_t>(input)]);
    work_.emplace(reads, writes);
    batch_.emplace(plan.launch_graphs());
  }
  // After the run: pushes what is left of it.
  void finish() {
    if (batch_) batch_->finish();
  }

 private:
  std::optional<DeviceWork> work_;
  std::optional<device::LaunchBatch> batch_;  // ends before work_ does
};

}  // namespace hybridnet
