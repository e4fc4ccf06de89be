// Small loops as machine code: condition and body of a loop over a handful of numbers become one C function, in which
// states stay in registers. Arithmetic is C's; other elementwise operators are called as the interpreter calls them, so
// results equal the interpreter's to the bit.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/native_code.h"
#include "graph/control/control_flow.h"
#include "hybridnet/mutable_graph.h"

namespace hybridnet {

class NativeLoop {
 public:
  // condition: null for a foreach. Null: some node has no form in C, or the loop is too large to gain anything.
  static std::unique_ptr<NativeLoop> make(const LoopSpec& loop, const Graph* condition, const Graph& body);

  // One run, or part of one.
  struct Run {
    std::span<const void* const> inputs;  // per slot; carries: not read
    std::span<void* const> rows;          // per stacked output: all its rows
    std::span<void* const> carries;       // in: states before the run, out: states after it
    int64_t done = 0, end = 0;            // iterations: the first to run, and where to stop
    int64_t count = 0;                    // foreach: iterations of the whole loop
    bool ended = false;                   // out: the condition did not hold
  };
  bool ready() const { return function_->get() != nullptr; }
  void run(Run& run) const;  // if ready()
  // Counts iterations of the interpreter; after enough of them the machine code is requested.
  void note_iterations(int64_t count);
  const std::string& source() const { return function_->source(); }

 private:
  struct Step {  // a function that the C code calls
    PointwiseFn function;
    const void* params;
  };
  friend class NativeLoopWriter;
  std::shared_ptr<NativeFunction> function_;
  std::vector<Step> steps_;
  std::vector<ParamsPtr> params_;  // keep those of steps_ alive
  std::atomic<int64_t> interpreted_{0};
};

}  // namespace hybridnet
