// Executable forms of graphs. A Plan is the only executor of graphs; CachedOp (hybridize), Executor (bind),
// control-flow bodies and the C, C++ and Java front ends all run Plans. One call is one engine task.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hybridnet/graph.h"
#include "hybridnet/imperative.h"
#include "hybridnet/ndarray.h"

namespace hybridnet {

// What a graph writes back: after a call, input `input` holds `value`.
struct GraphUpdate {
  int input = 0;
  NodeEntry value;
};

// A graph with its inputs in an order of the caller's, and with updates (mx.function).
// Updates: simultaneous. Values and outputs are formed of what the inputs held before the call.
// atomic:  a call that fails, also one whose failure shows up later, leaves every input as it was. Otherwise an update
//          is written as soon as nothing reads the old value any more.
struct FunctionGraph {
  std::vector<NodePtr> inputs;  // all variables that outputs and updates read, and those that are updated
  std::vector<NodeEntry> outputs;
  std::vector<GraphUpdate> updates;
  bool atomic = true;
  std::vector<uint8_t> donated;   // per input: results may be written into its memory; empty: none is
  std::vector<uint8_t> borrowed;  // per output: may lie in memory that the next call overwrites; empty: none does
};

struct CachedOpConfig {
  bool static_alloc = false;  // keep arenas between calls
  std::string passes;         // words that choose rewrites (docs/graph-passes.md); empty: fast_run
  std::string name;           // block path, for errors and profiles
  // What the backward run makes again instead of keeping it: "auto", "none", or until so many bytes are kept.
  std::string remat = "auto";
};

// What hybridize() makes: a Plan cache keyed by input signature (shapes, dtypes, train flag, which gradients), with
// gradient. Threads: call() is safe from any thread; calls that run at once use separate arenas.
class CachedOp : public RefCounted<CachedOp> {
 public:
  CachedOp(Symbol symbol, CachedOpConfig config);
  // symbol() is that of the outputs. Throws ValueError where a variable is no input or is updated twice.
  CachedOp(FunctionGraph graph, CachedOpConfig config);
  ~CachedOp();
  // Another one for the same graph; delete_updates: which writes no input. Kernels of equal nodes are linked once for
  // both. share_memory: also the memory of values between operators is one; calls of the two take turns then.
  Ref<CachedOp> copy(bool share_memory, bool delete_updates, const std::string& name) const;
  size_t num_kernels() const;  // linked so far, for this one and its copies; 0 unless made from a FunctionGraph
  // Inputs in the order of symbol.list_inputs(), or of the FunctionGraph. Auxiliary states are updated in training.
  // `out`: write results there. `key`: of its random numbers, from next_rng_key(); without, it takes the next.
  std::vector<NDArray> call(std::span<const NDArray> inputs, std::span<const NDArray> out = {},
                            std::optional<RngKey> key = {});
  bool is_random() const;  // has it operators that draw numbers?
  const Symbol& symbol() const;
  size_t num_plans() const;      // that are kept; a plan serves all sizes that its graph serves
  size_t num_linked() const;     // so far: plans made
  size_t num_layouts() const;    // so far: signatures that plans were laid out for
  size_t num_rewritten() const;  // so far: signatures for which the graph was rewritten and differentiated
  // Has a run failed when it had written new values to some inputs, and to others not? Until forget_torn() is called.
  bool is_torn() const;
  void forget_torn();
  std::string summary() const;  // plans, instructions, memory per plan
  // The plans of the most recent signature, instruction by instruction: implementation, memory, node, block and source
  // line (docs/debugging.md). Empty before the first call.
  std::string plan_text() const;
  std::string graph_text() const;  // the rewritten graph that they were linked from
  // Rows of the pipeline that changed that graph or a body of its loops and branches (docs/graph-passes.md).
  std::vector<std::string> fired_rewrites() const;

 private:
  CachedOp();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Symbol.bind: arrays bound once; forward and backward run Plans over them.
class Executor : public RefCounted<Executor> {
 public:
  // arguments / gradients / requests by list_arguments() order, auxiliaries by list_auxiliary_states() order.
  // A null gradient array or GradReq::kNull: no gradient for that argument.
  Executor(Symbol symbol, std::vector<NDArray> arguments, std::vector<NDArray> gradients, std::vector<GradReq> requests,
           std::vector<NDArray> auxiliaries, CachedOpConfig config = {});
  ~Executor();
  const std::vector<NDArray>& forward(bool train);
  // Empty: ones (loss heads ignore them). What arrives at outputs that no wanted gradient depends on is not looked at.
  void backward(std::span<const NDArray> out_grads);
  const std::vector<NDArray>& outputs() const;
  // What a forward and, where gradients are wanted, a backward run need beside the bound arrays: outputs and the
  // gradients that arrive at them, values between operators, workspace. Of graphs that are cut: what has run.
  int64_t memory_bytes();
  std::string plan_text() const;  // as CachedOp's: of the last forward run, and of what its gradient runs

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hybridnet
