// Executable forms of graphs. A Plan is the only executor of graphs: hybridized blocks, functions, executors, bodies of
// loops and the C, C++ and Java front ends all run Plans, by a GraphCallable (src/plan). One call is one engine task.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "hybridnet/graph.h"
#include "hybridnet/imperative.h"
#include "hybridnet/ndarray.h"

namespace hybridnet {

// The settings of a callable graph as its users choose them. All flags of its plans follow from them
// (src/plan/call_options.cc).
// Owner: a value; each callable keeps a copy.
struct CallOptions {
  std::string name;            // block path, for errors and profiles
  std::string passes;          // words that choose rewrites (docs/graph-passes.md); empty: fast_run
  std::string remat = "auto";  // values that backward computes again: "auto", "none", or all but so many bytes
  std::string precision;       // "bfloat16", "float16": products compute in it; empty or "float32": as written
  bool static_alloc = false;   // keeps arenas between calls
  // Readers of an output run as soon as it is complete; if the run fails later, the output keeps no error.
  bool early_outputs = false;
  static void describe(ParamSchema<CallOptions>& schema);
  // Throws ParamError for an unknown name or a value that does not fit.
  static CallOptions parse(const std::vector<std::pair<std::string, AttrValue>>& given);
};

// Symbol.bind: arrays bound once; forward and backward run Plans over them.
// Owner:   the front end that binds, by reference counting. It keeps the bound arrays alive.
// Threads: one at a time.
// Throws:  the constructor throws ValueError for a wrong number of arrays, ShapeError or DTypeError for a gradient that
//          differs from its argument; backward() throws GradientError before the first forward(). Errors of kernels
//          arrive at a wait for the outputs or gradients.
class Executor : public RefCounted<Executor> {
 public:
  // arguments / gradients / requests by list_arguments() order, auxiliaries by list_auxiliary_states() order.
  // A null gradient array or GradReq::kNull: no gradient for that argument.
  Executor(Symbol symbol, std::vector<NDArray> arguments, std::vector<NDArray> gradients, std::vector<GradReq> requests,
           std::vector<NDArray> auxiliaries, const CallOptions& options = {});
  ~Executor();
  const std::vector<NDArray>& forward(bool train);
  // out_grads empty: ones (loss heads ignore them). Gradients of outputs that no wanted gradient depends on are not
  // read.
  void backward(std::span<const NDArray> out_grads);
  const std::vector<NDArray>& outputs() const;
  // The memory of a forward and, if gradients are wanted, a backward run, without the bound arrays: outputs and their
  // gradients, values between operators, workspace. For graphs that are cut, only the parts that have run.
  int64_t memory_bytes();
  std::string plan_text() const;  // like GraphCallable::plan_text(): the last forward run and its gradient

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hybridnet
