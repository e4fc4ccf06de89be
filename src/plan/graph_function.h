// A graph called on arrays: plans by signature, recording, gradients of any order. CachedOp and Executor stand on it.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "base/thread_slots.h"
#include "hybridnet/imperative.h"
#include "hybridnet/ndarray.h"
#include "plan/call_template.h"
#include "plan/compiled_call.h"
#include "plan/graph_run.h"
#include "plan/segments.h"
#include "plan/watched_constants.h"

namespace hybridnet {

class GraphFunction : public RefCounted<GraphFunction> {
 public:
  GraphFunction(GraphDefinition definition, CompileOptions options);

  // Runs the plan for these inputs; records when the tape is on and some input needs a gradient. `out`: where results
  // go. `key`: of the random draws; a fresh one when absent.
  std::vector<NDArray> call(std::span<const NDArray> inputs, std::span<const NDArray> out,
                            std::optional<RngKey> key = {});

  struct Request {
    std::span<const NDArray> inputs;
    std::span<const uint8_t> wants = {};  // per input: is its gradient wanted? Empty: none is
    bool train = false;
    std::span<const NDArray> out = {};
    bool out_may_differ = false;     // in shape or dtype from the results: those go to new arrays then
    std::optional<RngKey> key = {};  // of the random draws; a fresh one when absent
    RngKey* used_key = nullptr;      // receives it
  };
  // The results, and in *run what their gradient needs; null where none is wanted. Nothing is recorded.
  std::vector<NDArray> forward(const Request& request, Ref<GraphRun>* run);

  // The plan for inputs of these specs, without gradients. Throws UnsupportedError where there is no single one: values
  // tell sizes, arrays are sparse, or code outside of the library runs.
  Ref<CompiledCall> compiled_for_prediction(std::span<const NDArray> inputs);
  // The same plan for calls that follow each other so closely that the team is awake; null where it would be the same.
  Ref<Plan> prompt_plan(CompiledCall& compiled);

  // For runs that go part by part (graph_run.h): runs on the calling thread, recorded as autograd says.
  std::vector<NDArray> run_parts(std::span<const NDArray> inputs, RngKey key);
  Ref<GraphFunction> without_writebacks();  // states keep their values
  // The same function for itself, or one that writes no input. Shares kernels; with share_memory also the memory of
  // values between operators: the two never run at once then.
  Ref<GraphFunction> copy(bool share_memory, bool delete_updates, const std::string& name);
  std::vector<uint8_t> written_inputs(bool train);  // per input: may a run write to it?
  std::vector<uint8_t> read_inputs() const;         // per input: does a node read it, beside those that update it?

  const GraphDefinition& definition() const { return definition_; }
  const WatchedConstants& constants() const { return constants_; }
  const CompileOptions& options() const { return options_; }
  const char* task_name() const { return task_name_; }
  bool uses_random() const { return uses_random_; }
  // What a forward and, where gradients are wanted, a backward run take beside inputs and gradients. Of a graph that is
  // cut: what its parts have taken so far.
  int64_t memory_bytes(std::span<const NDArray> inputs, std::span<const uint8_t> wants);
  size_t num_segments();  // 1: the graph is not cut
  struct Counts {
    size_t plans;      // that are kept: one for all sizes that are laid out over the same instructions
    size_t linked;     // so far
    size_t layouts;    // so far: one per signature, the first of each plan included
    size_t rewritten;  // so far: signatures for which the graph was rewritten and differentiated
  };
  Counts counts();
  bool is_torn();  // as Plan::is_torn, of any plan; forget: says that states are in order again
  void forget_torn();
  std::string summary();
  std::string plan_text();  // of the most recent signature; empty before the first call
  std::vector<std::string> fired_rewrites();
  std::string graph_text();  // the same, of the rewritten graph that the plan was linked from

 private:
  struct GradientFunction;
  class PlanRun;
  class CompiledUse;
  // wants: per input whether its gradient is; empty: none.
  Ref<CompiledCall> compiled_for(std::span<const NDArray> inputs, std::span<const uint8_t> wants, bool train);
  std::vector<NDArray> run_plan(const Ref<CompiledCall>& compiled, const Request& request, RngKey key,
                                Ref<GraphRun>* run);
  GraphRun::Heads compare_heads(const CompiledCall& compiled, std::span<const NDArray> heads);
  // Per output, as CallSignature::heads: those of the last backward run.
  const std::vector<uint8_t>& expected_heads(std::span<const uint8_t> wants) const;
  void expect_heads(std::vector<uint8_t> heads);
  std::vector<NDArray> run_backward(const PlanRun& run, std::span<const NDArray> heads, std::span<const NDArray> into);
  std::vector<NDArray> run_differentiable_backward(const PlanRun& run, std::span<const NDArray> inputs,
                                                   std::span<const NDArray> heads);
  static std::vector<StorageType> storages_of(std::span<const NDArray> inputs);
  bool has_sparse(std::span<const NDArray> inputs) const;  // are values of this run sparse?
  bool may_defer(std::span<const NDArray> inputs) const;
  bool goes_by_parts(std::span<const NDArray> inputs) const;
  std::string sparse_segments_text();  // where the graph is cut for sparse inputs
  SegmentedGraph& segments(bool for_gradient, const std::vector<StorageType>& storages = {});
  Ref<CompiledCall> most_recent();  // null before the first call
  Ref<GraphFunction> cut_at(const std::set<const Node*>& branches);
  std::vector<Ref<GraphFunction>> parts();
  int64_t memory_of_parts();
  static std::vector<NDArray> recorded_into(std::span<const NDArray> out, std::vector<NDArray> results);
  std::vector<NDArray> copied_to(std::span<const NDArray> out, std::vector<NDArray> results) const;
  std::shared_ptr<GradientFunction> gradient_function(const CallSignature& signature);
  // What errors call a value that the gradient reads.
  std::string value_name(const BackwardInput& source) const;
  int64_t held_bytes() const;  // by the compiled calls
  void forget_oldest_plans();
  void forget_stale_plans();  // made of constants that were written to since
  void check_inputs(std::span<const NDArray> inputs) const;
  void lend_borrowed(const Ref<CompiledCall>& compiled, Device device, std::vector<NDArray>& fresh);
  void check_declared(std::span<const NDArray> inputs) const;
  // What is given, but copies of what shares memory with inputs that are updated; empty: nothing does.
  std::vector<NDArray> apart_from_updated(std::span<const NDArray> inputs) const;
  // For calls whose updates cannot be part of a plan: runs on copies of what is updated, then commits.
  std::vector<NDArray> call_and_commit(std::span<const NDArray> inputs, std::span<const NDArray> out,
                                       std::optional<RngKey> key);
  void commit(std::span<const NDArray> inputs, std::vector<std::pair<size_t, NDArray>> values) const;
  Ref<GraphFunction> with_updates_as_outputs();
  // Of a graph with gradients in it.
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
  std::atomic<bool> is_cut_for_gradient_{false};  // found out when the gradient was to be compiled
  std::mutex mutex_;
  CallCompiler compiler_;
  std::map<std::pair<bool, std::vector<StorageType>>, std::unique_ptr<SegmentedGraph>> segments_;
  std::map<std::set<const Node*>, Ref<GraphFunction>> cut_at_;  // for signatures whose branches differ in size
  Ref<GraphFunction> without_writebacks_, with_updates_as_outputs_;
  std::list<Ref<CompiledCall>> compiled_;  // most recent first
  ThreadSlots<Ref<CompiledCall>> recent_;  // what threads used last, and use again without the mutex
  std::atomic<uint64_t> evictions_{0};     // from compiled_
  std::vector<std::pair<CallSignature, std::shared_ptr<GradientFunction>>> gradients_;
  // What expected_heads() gave so far: threads may still read it. Guarded by mutex_.
  std::list<std::vector<uint8_t>> known_heads_;
  std::atomic<const std::vector<uint8_t>*> expected_heads_;  // an element of known_heads_
};

}  // namespace hybridnet
