// A graph called on arrays: plans by signature, recording, gradients of any order. CachedOp and Executor stand on it.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "hybridnet/imperative.h"
#include "hybridnet/ndarray.h"
#include "plan/call_template.h"
#include "plan/compiled_call.h"
#include "plan/node_by_node.h"

namespace hybridnet {

class GraphFunction : public RefCounted<GraphFunction> {
 public:
  GraphFunction(GraphDefinition definition, CompileOptions options);

  // Runs the plan for these inputs; records when the tape is on and some input needs a gradient. `out`: where results
  // go. `key`: of the random draws; a fresh one when absent.
  std::vector<NDArray> call(std::span<const NDArray> inputs, std::span<const NDArray> out,
                            std::optional<RngKey> key = {});

  // A forward run whose gradient will be asked for by run_backward.
  struct Pending {
    Ref<CompiledCall> compiled;
    struct Saved {
      NDArray array;
      uint64_t overwrites = 0;
    };
    std::vector<Saved> sources;  // parallel to compiled->sources; heads are empty
    NDArray residuals;
    std::shared_ptr<KeptObjects> kept;  // null: the plans have no opaque instruction
    RngKey key;
  };
  // wants: per input whether its gradient is; empty: none.
  Ref<CompiledCall> compiled_for(std::span<const NDArray> inputs, std::span<const uint8_t> wants, bool train);
  std::vector<NDArray> run_forward(const Ref<CompiledCall>& compiled, std::span<const NDArray> inputs,
                                   std::span<const NDArray> out, RngKey key, Pending* pending);
  // One gradient per input, null where it is zero or unwanted.
  // `into`: per input where its gradient goes, null for a fresh array; empty: all fresh.
  std::vector<NDArray> run_backward(const Pending& pending, std::span<const NDArray> heads,
                                    std::span<const NDArray> into = {});
  // The same by a function that is recorded itself.
  std::vector<NDArray> run_differentiable_backward(const Pending& pending, std::span<const NDArray> inputs,
                                                   std::span<const NDArray> heads);

  const GraphDefinition& definition() const { return definition_; }
  const CompileOptions& options() const { return options_; }
  bool dynamic() const { return dynamic_; }  // only call() works then
  struct Counts {
    size_t plans;      // that are kept
    size_t linked;     // so far
    size_t rewritten;  // so far: of the linked ones, those that were rewritten and differentiated for their own sizes
  };
  Counts counts();
  std::string summary();
  std::string plan_text();  // of the most recent signature; empty before the first call
  std::vector<std::string> fired_rewrites();
  std::string graph_text();  // the same, of the rewritten graph that the plan was linked from

 private:
  struct GradientFunction;
  std::vector<NDArray> run_by_node(std::span<const NDArray> inputs, std::span<const NDArray> out);
  std::shared_ptr<GradientFunction> gradient_function(const CallSignature& signature);
  [[noreturn]] void throw_overwritten(const BackwardInput& source, const NDArray& array) const;
  void forget_oldest_plans();
  void check_inputs(std::span<const NDArray> inputs) const;

  std::string inputs_text(const CallSignature& signature) const;
  bool matches(const CallSignature& known, std::span<const NDArray> inputs, std::span<const uint8_t> wants,
               bool train) const;

  const GraphDefinition definition_;
  CompileOptions options_;
  const char* task_name_;
  const std::unique_ptr<NodeByNode> node_by_node_;
  bool dynamic_ = false;                       // the graph cannot be linked ahead: it runs node by node
  std::atomic<bool> recorded_by_node_{false};  // the same where a gradient is wanted: it goes through unbounded loops
  std::mutex mutex_;
  CallCompiler compiler_;
  std::list<Ref<CompiledCall>> compiled_;  // most recent first
  int64_t held_bytes_ = 0;                 // by them
  std::vector<std::pair<CallSignature, std::shared_ptr<GradientFunction>>> gradients_;
};

}  // namespace hybridnet
