// A graph whose input and output arrays are bound once, for predictions: a run looks nothing up and allocates nothing,
// it orders itself among the users of the arrays and runs the plan on the calling thread.
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <vector>

#include "plan/graph_callable.h"

namespace hybridnet {

class BoundRun {
 public:
  enum class Calls : int8_t {
    kOne,   // uses memory that it shares with other calls of the graph
    kMany,  // may run at any time: keeps its own memory for values between operators
  };
  // inputs: the graph's inputs, in order. outputs: arrays that receive the results; empty: new ones are made. Throws
  // ShapeError and DTypeError for outputs of other specs, UnsupportedError for graphs whose sizes depend on values and
  // for sparse arrays.
  BoundRun(Ref<GraphCallable> function, std::vector<NDArray> inputs, std::span<const NDArray> outputs, Calls calls);
  const std::vector<NDArray>& outputs() const { return outputs_; }
  // Safe from any thread; one run at a time. Waits for inputs that are still being computed.
  void run();

 private:
  struct Copy {
    size_t fresh, output;
  };
  using Clock = std::chrono::steady_clock;
  // A plan with memory of its own.
  struct OwnPlan {
    explicit OwnPlan(Ref<Plan> shared) : plan(std::move(shared)), runs(*plan, Plan::Repeated::Memory::kOwn) {}
    const Ref<Plan> plan;
    Plan::Repeated runs;
  };
  void run_plan(RngKey key, OwnPlan* own);  // own: null: uses shared memory
  bool finds_team_awake() const;

  const Ref<GraphCallable> function_;
  const Ref<Compilation> compiled_;
  const std::vector<NDArray> inputs_;
  std::vector<NDArray> fresh_, outputs_;
  std::vector<Ref<Chunk>> held_;  // their memory, so that it is neither taken over nor exchanged
  std::vector<Copy> copies_;      // for results that could not be written into the output arrays
  std::vector<Var*> reads_, writes_;
  // Used while the engine lets this run write its outputs: one run at a time.
  std::vector<Plan::InputBinding> bindings_;
  std::vector<void*> places_;
  std::optional<OwnPlan> own_, awake_;  // awake_: for a team that is awake (finds_team_awake()); empty: no gain
  Clock::time_point ended_{};           // end of the last run; set only if awake_ is
};

}  // namespace hybridnet
