// One run of a plan as one engine task.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "hybridnet/ndarray.h"
#include "plan/plan.h"

namespace hybridnet {

// The arrays of a run. `residuals`: null if the plan has none; written by a forward plan.
struct PlanArrays {
  std::span<const NDArray> inputs;   // parallel to the graph's inputs; residual inputs of a backward plan are views
  std::span<const NDArray> outputs;  // parallel to Plan::fresh_outputs()
  NDArray residuals;
  KeptObjects* kept = nullptr;  // lives through the run: opaque plans run before push_plan() returns
  std::shared_ptr<const std::vector<NDArray>> constants = nullptr;  // arrays that the plan may read; null: none
  bool inputs_stay_sound = false;  // a run that fails has written to no input, so inputs keep no error
  // A run by a worker lets the readers of an output run as soon as the output is complete. If the run fails later, that
  // output keeps no error.
  bool outputs_end_early = false;
};

// Runs the plan now if it is cheap and no task is in its way, else when the engine can. An opaque plan runs now, on the
// calling thread, which waits for the tasks before it. `name` is interned.
void push_plan(const Ref<Plan>& plan, const PlanArrays& arrays, RngKey key, const char* name);

// Fills an array with zeros, as one engine task.
void push_zeros(const NDArray& array);
// Does the same, and releases the memory until it is written again.
void push_released_zeros(const NDArray& array);

}  // namespace hybridnet
