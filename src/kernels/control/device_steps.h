// The steps of loops and branches that run on a device as conditional parts of a graph (device/launch_batch.h):
// launches of the kernels of kernels/device/loops.cuh on device::current().
// Threads: any.
// Throws:  what launches throw.
#pragma once

#include <cstdint>
#include <span>

#include "hybridnet/kernel.h"
#include "kernels/device/loop_arguments.h"

namespace hybridnet::kernels::on_device {

// Counts an iteration, or begins to count, and sets the condition of the loop. dtype: of decision.value.
void launch_loop_decision(const device::LoopDecision& decision, DType dtype);
void launch_branch_decision(const device::BranchDecision& decision, DType dtype);

struct RowMove {
  const void* from;
  void* to;
  int64_t from_step, to_step;  // bytes between rows; 0: each iteration uses the same memory
  int64_t bytes;
};
// No move may read what another one of the call writes. control: null for moves whose steps are 0.
void launch_row_moves(const device::LoopControl* control, std::span<const RowMove> moves);
// A kernel that does nothing: a conditional part of a graph may not be empty.
void launch_nothing();

struct ClearedRows {
  void* out;
  int64_t row_bytes, rows;
};
// Clears the rows after the last iteration.
void launch_row_clears(const device::LoopControl* control, std::span<const ClearedRows> clears);

}  // namespace hybridnet::kernels::on_device
