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

// A write-back of a graph: after a call, input `input` holds `value`.
struct GraphUpdate {
  int input = 0;
  NodeEntry value;
};

// A graph with its inputs in the order of the caller, and with updates (mx.function).
// Updates: simultaneous. New values and outputs are computed from the values of the inputs before the call.
// atomic:  a call that fails, also one whose failure shows up later, leaves every input as it was. Otherwise an update
//          is written as soon as nothing reads the old value any more.
struct FunctionGraph {
  std::vector<NodePtr> inputs;  // all variables that outputs and updates read, and those that are updated
  std::vector<NodeEntry> outputs;
  std::vector<GraphUpdate> updates;
  bool atomic = true;
  std::vector<uint8_t> donated;   // per input: results may be written into its memory; empty: none is
  std::vector<uint8_t> borrowed;  // per output: may use memory that the next call overwrites; empty: none does
};

struct CachedOpConfig {
  bool static_alloc = false;  // keep arenas between calls
  std::string passes;         // words that choose rewrites (docs/graph-passes.md); empty: fast_run
  std::string name;           // block path, for errors and profiles
  // The values that the backward run computes again instead of keeping them: "auto", "none", or a limit of kept bytes.
  std::string remat = "auto";
};

// The result of hybridize(): a Plan cache keyed by input signature (shapes, dtypes, train flag, inputs that need a
// gradient), with gradient. Threads: call() is safe from any thread; calls that run at once use separate arenas.
class CachedOp : public RefCounted<CachedOp> {
 public:
  CachedOp(Symbol symbol, CachedOpConfig config);
  // symbol() then has the outputs only. Throws ValueError if a variable is no input or is updated twice.
  CachedOp(FunctionGraph graph, CachedOpConfig config);
  ~CachedOp();
  // A copy for the same graph, without the updates if delete_updates. Kernels of equal nodes are linked once for both.
  // share_memory: the two also share the memory of values between operators; their calls then take turns.
  Ref<CachedOp> copy(bool share_memory, bool delete_updates, const std::string& name) const;
  size_t num_kernels() const;  // linked so far, by this object and its copies; 0 unless made from a FunctionGraph
  // Inputs in the order of symbol.list_inputs(), or of the FunctionGraph. Auxiliary states are updated in training.
  // `out`: arrays for the results. `key`: the key of the random numbers, by default from next_rng_key().
  std::vector<NDArray> call(std::span<const NDArray> inputs, std::span<const NDArray> out = {},
                            std::optional<RngKey> key = {});
  bool is_random() const;  // true if an operator draws random numbers
  const Symbol& symbol() const;
  size_t num_plans() const;      // plans that are kept; a plan serves all sizes that its graph serves
  size_t num_linked() const;     // plans made so far
  size_t num_layouts() const;    // signatures that plans were laid out for so far
  size_t num_rewritten() const;  // signatures for which the graph was rewritten and differentiated so far
  // True if a run has failed after it had written new values to some but not all inputs, until forget_torn() is called.
  bool is_torn() const;
  void forget_torn();
  std::string summary() const;  // plans, instructions, memory per plan
  // The plans of the most recent signature, instruction by instruction: implementation, memory, node, block and source
  // line (docs/debugging.md). Empty before the first call.
  std::string plan_text() const;
  std::string graph_text() const;  // the rewritten graph of these plans
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
  // out_grads empty: ones (loss heads ignore them). Gradients of outputs that no wanted gradient depends on are not
  // read.
  void backward(std::span<const NDArray> out_grads);
  const std::vector<NDArray>& outputs() const;
  // The memory of a forward and, if gradients are wanted, a backward run, without the bound arrays: outputs and their
  // gradients, values between operators, workspace. For graphs that are cut, only the parts that have run.
  int64_t memory_bytes();
  std::string plan_text() const;  // like CachedOp::plan_text(): the last forward run and its gradient

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hybridnet
