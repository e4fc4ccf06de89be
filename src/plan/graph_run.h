// One forward run of a graph whose gradient may be requested: the state that the tape (RecordedRun) and Executor keep.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "hybridnet/imperative.h"
#include "hybridnet/ndarray.h"

namespace hybridnet {

class GraphCallable;

class GraphRun : public RefCounted<GraphRun> {
 public:
  virtual ~GraphRun() = default;
  // True if a wanted gradient reads the head of this output.
  virtual bool reads_head(size_t output) const = 0;
  // Compares the outputs whose heads are not null with the outputs that backward() was compiled for, and prepares the
  // next runs for the former. Outputs without a gradient do not count. kFewer: backward() takes zeros for the missing
  // heads, which gives values that are not finite if a derivative is infinite. kOthers: backward() ignores some heads.
  enum class Heads : int8_t { kSame, kFewer, kOthers };
  virtual Heads compare(std::span<const NDArray> heads) = 0;
  // Returns one gradient per input, null if it is zero or unwanted. heads: the gradients of the outputs, null for zero.
  // into: per input the array that may receive its gradient, null for a fresh array; empty: all fresh.
  virtual std::vector<NDArray> backward(std::span<const NDArray> heads, std::span<const NDArray> into) = 0;
  // Does the same for any heads, by steps that are recorded if the thread records. inputs: the inputs of the run.
  virtual std::vector<NDArray> differentiable_backward(std::span<const NDArray> inputs,
                                                       std::span<const NDArray> heads) = 0;
  // See RecordedFunction::visit_saved.
  virtual void visit_saved(const std::function<void(NDArray&)>& visit) = 0;
};

struct RunRequest {
  std::span<const NDArray> inputs;
  std::span<const uint8_t> wants;  // per input: a Want; empty: no gradient is wanted
  bool train = false;
  RngKey key;
};

// Runs a graph whose sizes are not known yet, on the calling thread or (deferred) as a task of the engine, which begins
// when the inputs are computed; then the results are arrays whose shape is pending. The returned run holds the data for
// their gradient: its own tape, with the steps of the parts.
struct TapedResults {
  std::vector<NDArray> outputs;
  Ref<GraphRun> run;  // null: no gradient is wanted
};
TapedResults run_taped(const Ref<GraphCallable>& function, const RunRequest& request, bool deferred);

}  // namespace hybridnet
