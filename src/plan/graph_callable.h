// A graph called on arrays: plans by signature, recording, gradients of any order. CachedOp and Executor are built on
// it.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "base/thread_slots.h"
#include "hybridnet/imperative.h"
#include "hybridnet/ndarray.h"
#include "plan/compilation.h"
#include "plan/compilation_template.h"
#include "plan/graph_run.h"
#include "plan/segments.h"
#include "plan/watched_constants.h"

namespace hybridnet {

class GraphCallable : public RefCounted<GraphCallable> {
 public:
  GraphCallable(GraphDefinition definition, CompileOptions options);
  // Inputs in the order of symbol.list_inputs().
  GraphCallable(const Symbol& symbol, const CallOptions& options);

  // Runs the plan for these inputs; records if the tape is recording and some input needs a gradient. `out`: receives
  // the results. `key`: for the random draws; a fresh one if absent.
  std::vector<NDArray> call(std::span<const NDArray> inputs, std::span<const NDArray> out = {},
                            std::optional<RngKey> key = {});

  struct Request {
    std::span<const NDArray> inputs;
    std::span<const uint8_t> wants = {};  // per input: a Want; empty: no gradient is wanted
    bool train = false;
    std::span<const NDArray> out = {};
    bool out_may_differ = false;     // if `out` differs in shape or dtype from the results, new arrays are made
    std::optional<RngKey> key = {};  // for the random draws; a fresh one if absent
    RngKey* used_key = nullptr;      // receives the key
  };
  // Returns the results; *run receives the data for their gradient, null if none is wanted. Nothing is recorded.
  std::vector<NDArray> forward(const Request& request, Ref<GraphRun>* run);

  // The plan for inputs of these specs, without gradients. Throws UnsupportedError if there is no single plan: sizes
  // depend on values, arrays are sparse, or code outside of the library runs.
  Ref<Compilation> compilation_for_prediction(std::span<const NDArray> inputs);
  // A plan for calls that follow each other so closely that the team is awake; null if it would be the same plan.
  Ref<Plan> awake_team_plan(Compilation& compiled);

  // For runs part by part (graph_run.h): runs on the calling thread, recorded if autograd records.
  std::vector<NDArray> run_parts(std::span<const NDArray> inputs, RngKey key);
  Ref<GraphCallable> without_writebacks();  // states keep their values
  // Returns a separate function that computes the same, or one that writes no input. The two share kernels; with
  // share_memory also the memory of values between operators: then they never run at the same time.
  Ref<GraphCallable> copy(bool share_memory, bool delete_updates, const std::string& name);
  std::vector<uint8_t> written_inputs(bool train) const;  // per input: 1 if a run in this mode writes to it
  std::vector<uint8_t> read_inputs(bool train) const;  // per input: 1 if the results of a run in this mode depend on it

  const GraphDefinition& definition() const { return definition_; }
  Symbol symbol() const { return {definition_.outputs}; }
  const WatchedConstants& constants() const { return constants_; }
  const CompileOptions& options() const { return options_; }
  const char* task_name() const { return task_name_; }
  bool uses_random() const { return uses_random_; }
  // The bytes of a forward and, if gradients are wanted, a backward run, without inputs and gradients. If the graph is
  // cut: the bytes of its parts so far.
  int64_t memory_bytes(std::span<const NDArray> inputs, std::span<const uint8_t> wants);
  size_t num_segments();  // 1: the graph is not cut
  struct Counts {
    size_t plans;      // now kept: one for all sizes that are laid out over the same instructions
    size_t linked;     // so far
    size_t layouts;    // so far: one per signature, the first of each plan included
    size_t rewritten;  // so far: signatures for which the graph was rewritten and differentiated
  };
  Counts counts();
  size_t num_kernels() const { return options_.kernels ? options_.kernels->num_linked() : 0; }  // see KernelStore
  bool is_torn();  // true if Plan::is_torn() of any plan; forget_torn(): states are in order again
  void forget_torn();
  std::string summary();
  std::string plan_text();  // for the most recent signature; empty before the first call
  std::vector<std::pair<std::string, std::string>> fired_rewrites();  // their names and stages, as in PassReport
  std::string graph_text();  // for the same signature: the rewritten graph that the plan was linked from

 private:
  struct GradientFunction;
  class PlanRun;
  class CompilationUse;
  // wants: a Want per input; empty: no gradient is wanted.
  Ref<Compilation> compilation_for(std::span<const NDArray> inputs, std::span<const uint8_t> wants, bool train);
  std::vector<NDArray> run_plan(const Ref<Compilation>& compiled, const Request& request, RngKey key,
                                Ref<GraphRun>* run);
  GraphRun::Heads compare_heads(const Compilation& compiled, std::span<const NDArray> heads);
  // The heads of the last backward run, in the form of CallSignature::heads.
  const std::vector<uint8_t>& expected_heads(std::span<const uint8_t> wants) const;
  void expect_heads(std::vector<uint8_t> heads);
  std::vector<NDArray> run_backward(const PlanRun& run, std::span<const NDArray> heads, std::span<const NDArray> into);
  std::vector<NDArray> run_differentiable_backward(const PlanRun& run, std::span<const NDArray> inputs,
                                                   std::span<const NDArray> heads);
  static std::vector<StorageType> storages_of(std::span<const NDArray> inputs);
  bool has_sparse(std::span<const NDArray> inputs) const;  // true if values of this run are sparse
  bool may_defer(std::span<const NDArray> inputs) const;
  bool goes_by_parts(std::span<const NDArray> inputs) const;
  std::string sparse_segments_text();  // the cuts of the graph for sparse inputs
  SegmentedGraph& shown_segments();    // of a call so far; else of prediction
  SegmentedGraph& segments(bool for_gradient, bool train, const std::vector<StorageType>& storages = {});
  Ref<Compilation> most_recent();  // null before the first call that is not run by steps
  Ref<GraphCallable> cut_at(const std::set<const Node*>& branches);
  std::vector<Ref<GraphCallable>> parts();
  int64_t memory_of_parts();
  static std::vector<NDArray> recorded_into(std::span<const NDArray> out, std::vector<NDArray> results);
  std::vector<NDArray> copied_to(std::span<const NDArray> out, std::vector<NDArray> results) const;
  std::shared_ptr<GradientFunction> gradient_function(const CallSignature& signature);
  // The name of a value that the gradient reads, for errors.
  std::string value_name(const BackwardInput& source) const;
  int64_t held_bytes() const;  // by the compiled calls
  void forget_oldest_plans();
  void forget_stale_plans();  // plans made from constants that were written to since
  void check_inputs(std::span<const NDArray> inputs) const;
  Device common_device(std::span<const NDArray> inputs) const;
  void lend_borrowed(const Ref<Compilation>& compiled, Device device, std::vector<NDArray>& fresh);
  void check_declared(std::span<const NDArray> inputs) const;
  // Returns the inputs, with copies of those that share memory with updated inputs; empty: none does.
  std::vector<NDArray> apart_from_updated(std::span<const NDArray> inputs) const;
  // For calls whose updates cannot be part of a plan: runs on copies of the updated inputs, then commits.
  std::vector<NDArray> call_and_commit(std::span<const NDArray> inputs, std::span<const NDArray> out,
                                       std::optional<RngKey> key);
  void commit(std::span<const NDArray> inputs, std::vector<std::pair<size_t, NDArray>> values) const;
  Ref<GraphCallable> with_updates_as_outputs();
  // For a graph with gradients in it: throws if it would run in parts.
  void check_in_one_piece(std::span<const NDArray> inputs) const;
  [[noreturn]] void throw_in_parts(std::string because) const;

  std::string inputs_text(const CallSignature& signature) const;
  bool matches(const CallSignature& known, std::span<const NDArray> inputs, std::span<const uint8_t> wants,
               bool train) const;

  const GraphDefinition definition_;
  WatchedConstants constants_;
  CompileOptions options_;
  const char* task_name_;
  bool is_cut_ = false, is_opaque_ = false, uses_random_ = false, makes_sparse_ = false, has_gradients_ = false;
  std::atomic<bool> is_cut_for_gradient_{false};  // detected when the gradient is compiled
  std::mutex mutex_;
  Compiler compiler_;
  std::map<std::tuple<bool, bool, std::vector<StorageType>>, std::unique_ptr<SegmentedGraph>> segments_;
  std::map<std::set<const Node*>, Ref<GraphCallable>> cut_at_;  // for signatures whose branches differ in size
  Ref<GraphCallable> without_writebacks_, with_updates_as_outputs_;
  std::list<Ref<Compilation>> compiled_;  // most recent first
  ThreadSlots<Ref<Compilation>> recent_;  // the call that each thread used last, reused without the mutex
  std::atomic<uint64_t> evictions_{0};    // from compiled_
  std::vector<std::pair<CallSignature, std::shared_ptr<GradientFunction>>> gradients_;
  // Earlier results of expected_heads(): threads may still read them. Guarded by mutex_.
  std::list<std::vector<uint8_t>> known_heads_;
  std::atomic<const std::vector<uint8_t>*> expected_heads_;  // an element of known_heads_
};

// The definition of a function (mx.function), for a GraphCallable. Throws ValueError if the graph reads a variable that
// is no input, or if an input is given or updated twice.
GraphDefinition function_definition(GraphDefinition definition, const std::string& name);

}  // namespace hybridnet
