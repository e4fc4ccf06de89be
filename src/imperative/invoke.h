// The imperative call in full; include/hybridnet/imperative.h has the views of it that other rooms use.
#pragma once

#include <algorithm>
#include <span>

#include "hybridnet/imperative.h"

namespace hybridnet {

inline constexpr int kMaxStackArrays = 8;

struct InvokeOptions {
  std::span<const NDArray> out;  // write the visible results here
  bool share_views = false;      // results of view ops may share memory with the input (temporaries of the tape)
};

// The same values in another dtype, recorded like any call; the array itself where it has the dtype.
NDArray as_dtype(const NDArray& array, DType dtype);

// Runs op; fills results[0 .. number of outputs). Records on the tape when that is on.
void invoke_into(const Op& op, const ParamsPtr& params, std::span<const NDArray> inputs, const InvokeOptions& options,
                 std::vector<NDArray>* results);

// The same, where nothing of the tape stands in the way of writing into options.out (recorded_writes.h).
void invoke_apart(const Op& op, const ParamsPtr& params, std::span<const NDArray> inputs, const InvokeOptions& options,
                  std::vector<NDArray>* results);

// Does the tape get a step for the call?
inline bool wants_record(const Op& op, std::span<const NDArray> inputs) {
  return autograd_state().recording && op.differentiable() && !op.stops_gradient &&
         std::any_of(inputs.begin(), inputs.end(), [](const NDArray& a) { return needs_gradient(a); });
}

// For a step that is recorded and reads its inputs when it is over: those that `out` overwrites are copies, which stem
// from the same.
std::vector<NDArray> kept_inputs(std::span<const NDArray> inputs, std::span<const NDArray> out);

}  // namespace hybridnet
