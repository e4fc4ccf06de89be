// One forward run of a graph whose gradient may be asked for: what the tape (RecordedCall) and Executor keep.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "hybridnet/imperative.h"
#include "hybridnet/ndarray.h"

namespace hybridnet {

class GraphFunction;

class GraphRun : public RefCounted<GraphRun> {
 public:
  virtual ~GraphRun() = default;
  // Does a wanted gradient read what arrives at this output?
  virtual bool reads_head(size_t output) const = 0;
  // Compares the outputs at which heads arrive (are not null) with those that backward() was compiled for, and makes
  // the next runs ready for these. Outputs without a gradient do not count. kFewer: backward() takes zeros for the
  // missing ones, which are not finite where a derivative is infinite. kOthers: backward() ignores some.
  enum class Heads : int8_t { kSame, kFewer, kOthers };
  virtual Heads compare(std::span<const NDArray> heads) = 0;
  // One gradient per input, null where it is zero or unwanted. heads: what arrives at the outputs, null for zero. into:
  // per input where its gradient may go, null for a fresh array; empty: all fresh.
  virtual std::vector<NDArray> backward(std::span<const NDArray> heads, std::span<const NDArray> into) = 0;
  // The same for any heads, by steps that are recorded themselves where the thread records. inputs: those of the run.
  virtual std::vector<NDArray> differentiable_backward(std::span<const NDArray> inputs,
                                                       std::span<const NDArray> heads) = 0;
  // As RecordedFunction::visit_saved.
  virtual void visit_saved(const std::function<void(NDArray&)>& visit) = 0;
};

struct RunRequest {
  std::span<const NDArray> inputs;
  std::span<const uint8_t> wants;  // per input: is its gradient wanted? Empty: none is
  bool train = false;
  RngKey key;
};

// Runs a graph whose sizes are not known yet, on the calling thread or (deferred) as a task of the engine, which begins
// when the inputs are there; then the results are arrays whose shape is pending. Returns what their gradient needs: a
// tape of its own, that of the parts.
struct TapedResults {
  std::vector<NDArray> outputs;
  Ref<GraphRun> run;  // null: no gradient is wanted
};
TapedResults run_taped(const Ref<GraphFunction>& function, const RunRequest& request, bool deferred);

}  // namespace hybridnet
