// A loop that a GPU runs by itself: one WHILE node of a CUDA graph, so that the host waits for no condition. The host
// visits one iteration, whose kernels are recorded (device/launch_batch.h). Their arguments are the same in each
// iteration: states and rows lie at fixed places, where kernels move them between iterations, by a row number that the
// device counts.
// Owner:   the kernel of the loop.
// Threads: any; the memory of a run is that of its KernelArgs.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/launch_batch.h"
#include "graph/control/control_flow.h"
#include "plan/plan.h"

namespace hybridnet {

class DeviceLoop {
 public:
  // The loop of a node with these bodies (condition: null for a foreach). Null: the host has to run it, because it
  // draws random numbers, or its bodies need the host or write to their inputs.
  static std::unique_ptr<DeviceLoop> make(const Node& node, const LinkContext& context, Plan* condition, Plan& body);

  int64_t workspace_bytes() const { return workspace_bytes_; }
  // Runs up to `most` iterations and finishes the outputs, which have `rows` rows. count: the number of iterations, in
  // the memory of the device; null: `most`. False, and nothing is done: the host has to run the loop. Throws only while
  // a loop or branch around this one is recorded.
  bool run(const KernelArgs& args, int64_t most, int64_t rows, const TensorRef* count);

  // True if only run_in_pieces() may run the loop: it has no limit or a large one, or its end has to be reported.
  bool needs_host() const { return needs_host_; }
  struct End {
    int64_t done;  // iterations
    bool holds;    // the condition, after the last of them
  };
  // The same in graphs of a limited number of iterations, for which the host waits, so that Ctrl-C can end the loop.
  // None: the host has to run the loop from its start. Throws if the loop is interrupted.
  std::optional<End> run_in_pieces(const KernelArgs& args, int64_t most, int64_t rows);

 private:
  // The places of one run in its workspace.
  struct Slot {
    int64_t offset = 0, bytes = 0;
  };
  // The way to the next value of a state.
  struct Next {
    int fresh = -1;  // the array of the body that is it
    int input = -1;  // the input of the body that is it; with fresh < 0: -1 if the body writes over the state
    Slot aside;      // of an input: its value, while the states change
  };
  class Recording;

  DeviceLoop(const Node& node, Plan* condition, Plan& body, const std::vector<TensorSpec>& inputs);
  Slot place(int64_t bytes);
  void share_exclusive_rows(const Node& node);
  const Slot& row_of(size_t stacked) const;  // the row of a stacked output that an iteration makes
  device::LaunchBatch* usable_batch() const;
  bool run_piece(device::LaunchBatch& batch, Recording& recording, int64_t limit, bool is_first);

  const std::string name_;
  const LoopSpec loop_;
  Plan* const condition_;
  Plan& body_;
  Slot control_, test_;
  std::vector<Slot> slices_, states_, fresh_;
  std::vector<Next> next_;  // per state
  int64_t workspace_bytes_ = 0;
  bool needs_host_ = false;
  std::atomic<bool> gave_up_{false};  // a graph of the loop could not be made
};

// True if loops and branches of this device may become conditional parts of graphs.
bool device_decides(Device device);

}  // namespace hybridnet
