// A graph with arrays bound to its inputs and outputs once, for predictions: a run looks nothing up and allocates
// nothing, it orders itself among the users of the arrays and runs the plan on the calling thread.
#pragma once

#include <mutex>
#include <span>
#include <vector>

#include "plan/graph_function.h"

namespace hybridnet {

class BoundCall {
 public:
  // inputs: of the graph, in order. outputs: arrays that receive the results; empty: new ones are made. Throws
  // ShapeError and DTypeError for outputs of other specs, UnsupportedError for graphs whose sizes only values tell and
  // for sparse arrays.
  BoundCall(Ref<GraphFunction> function, std::vector<NDArray> inputs, std::span<const NDArray> outputs);
  const std::vector<NDArray>& outputs() const { return outputs_; }
  // Any number of threads; one at a time. Values of the inputs that are still being computed are waited for.
  void run();

 private:
  struct Copy {
    size_t fresh, output;
  };
  void run_plan(RngKey key);

  const Ref<GraphFunction> function_;
  const Ref<CompiledCall> compiled_;
  const std::vector<NDArray> inputs_;
  std::vector<NDArray> fresh_, outputs_;
  std::vector<Copy> copies_;  // of results that could not be written where they are wanted
  std::vector<Var*> reads_, writes_;
  std::mutex mutex_;  // of what follows, and of the values
  std::vector<Plan::InputBinding> bindings_;
  std::vector<void*> places_;
};

}  // namespace hybridnet
