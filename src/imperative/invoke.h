// The complete interface of imperative calls; include/hybridnet/imperative.h has the part that other folders use.
#pragma once

#include <algorithm>
#include <span>
#include <utility>

#include "hybridnet/imperative.h"

namespace hybridnet {

inline constexpr int kMaxStackArrays = 8;

struct InvokeOptions {
  std::span<const NDArray> out;  // write the visible results here
  bool share_views = false;      // results of view ops may share memory with the input (temporaries of the tape)
};

// While it lives, operators without inputs make their outputs on this device, unless a parameter names another one: the
// constants of gradient rules and of composed operators are where their values are used.
// Owner: a block of the thread; scopes end in reverse order.
class DefaultDevice {
 public:
  explicit DefaultDevice(Device device) : before_(std::exchange(current_, device)) {}
  ~DefaultDevice() { current_ = before_; }
  DefaultDevice(const DefaultDevice&) = delete;
  static Device current() { return current_; }

 private:
  const Device before_;
  static thread_local constinit Device current_ __attribute__((tls_model("initial-exec")));
};

// Returns the array cast to `dtype`, recorded like any call; the array itself if it has that dtype.
NDArray as_dtype(const NDArray& array, DType dtype);

// Runs op; fills results[0 .. number of outputs). Records a step if the tape is recording.
void invoke_into(const Op& op, const ParamsPtr& params, std::span<const NDArray> inputs, const InvokeOptions& options,
                 std::vector<NDArray>* results);

// Does the same without the special handling of recorded arrays in options.out (invoke_over() in recorded_writes.h).
void invoke_apart(const Op& op, const ParamsPtr& params, std::span<const NDArray> inputs, const InvokeOptions& options,
                  std::vector<NDArray>* results);

// True if the call is recorded as a step on the tape.
inline bool wants_record(const Op& op, std::span<const NDArray> inputs) {
  return autograd_state().recording && op.differentiable() && !op.stops_gradient &&
         std::any_of(inputs.begin(), inputs.end(), [](const NDArray& a) { return needs_gradient(a); });
}

// Returns the inputs for a recorded step that reads them after the call: each input that `out` overwrites is replaced
// by a copy with the same tape mark.
std::vector<NDArray> kept_inputs(std::span<const NDArray> inputs, std::span<const NDArray> out);

}  // namespace hybridnet
