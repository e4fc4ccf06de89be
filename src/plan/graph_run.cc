#include "plan/graph_run.h"

#include <algorithm>

#include "base/interrupt.h"
#include "engine/run_ahead.h"
#include "hybridnet/sparse.h"
#include "imperative/autograd_scope.h"
#include "plan/graph_callable.h"

namespace hybridnet {
namespace {

const OpRef kCopy{"_copy"};

constexpr int64_t kGuessedCostNs = 1'000'000;  // for a run whose sizes are not known

uint64_t overwrites_of(const NDArray& array) { return array.impl()->chunk->overwrites.load(std::memory_order_relaxed); }

class NpShapeScope {
 public:
  explicit NpShapeScope(bool on) : before_(set_np_shape(on)) {}
  ~NpShapeScope() { set_np_shape(before_); }
  NpShapeScope(const NpShapeScope&) = delete;

 private:
  const bool before_;
};

// The start, on the caller's tape, of a run that is repeated. Its inputs may depend on each other there: while the
// gradients of this run are computed, no gradient passes the border.
class Border final : public RecordedFunction {
 public:
  bool closed = false;
  std::string name() const override { return "border"; }
  std::vector<NDArray> backward(std::span<const NDArray> out_grads, bool) override {
    return closed ? std::vector<NDArray>(out_grads.size()) : std::vector<NDArray>(out_grads.begin(), out_grads.end());
  }
};

class TapedRun final : public GraphRun {
 public:
  TapedRun(Ref<GraphCallable> function, const RunRequest& request)
      : function_(std::move(function)),
        wants_(request.wants.begin(), request.wants.end()),
        train_(request.train),
        key_(request.key) {}

  // leaves: the inputs without the caller's tape.
  std::vector<NDArray> run(std::vector<NDArray> leaves) {
    leaves_ = std::move(leaves);
    for (size_t i = 0; i < wants_.size(); ++i)
      if (wants_[i] != kNoGradient) mark_variable(leaves_[i], buffer_of(i), GradReq::kWrite);
    const AutogradScope scope({.recording = !wants_.empty(), .training = train_});
    const RunHereScope here;
    outputs_ = function_->run_parts(leaves_, key_);
    // A result must not be an argument, nor another result: a write to one would change the other.
    for (auto output = outputs_.begin(); output != outputs_.end(); ++output) {
      const auto shared = [&](const NDArray& other) { return other.shares_memory(*output); };
      if (std::any_of(leaves_.begin(), leaves_.end(), shared) || std::any_of(outputs_.begin(), output, shared))
        *output = invoke_one(kCopy.op(), kCopy.op().default_params, {&*output, 1});
    }
    return outputs_;
  }

  // Notes the first output of the task that runs it: readers wait for this output.
  void set_running(Ref<Chunk> first_output) { first_output_ = std::move(first_output); }
  void end_loans() {
    for (const NDArray& leaf : leaves_) leaf.end_loan();
  }
  void drop() {
    leaves_.clear();
    outputs_.clear();
  }

  bool reads_head(size_t output) const override {
    wait();
    return needs_gradient(outputs_[output]);
  }

  Heads compare(std::span<const NDArray>) override { return Heads::kSame; }  // gradients() skips absent heads
  std::vector<NDArray> backward(std::span<const NDArray> heads, std::span<const NDArray>) override {
    wait();
    return gradients(outputs_, heads, leaves_, false);
  }

  std::vector<NDArray> differentiable_backward(std::span<const NDArray> inputs,
                                               std::span<const NDArray> heads) override {
    wait();
    std::vector<NDArray> wanted, passed, leaves(inputs.begin(), inputs.end()), outputs;
    for (size_t i = 0; i < wants_.size(); ++i) {
      if (wants_[i] == 0) continue;
      wanted.push_back(inputs[i]);
      passed.push_back(leaves[i] = inputs[i].detached());
    }
    const auto border = make_ref<Border>();
    // Records on the caller's tape, in the mode of the forward run, which is repeated here.
    const AutogradScope recorded({.recording = true, .training = train_});
    record(Ref<RecordedFunction>(border.get()), wanted, passed);
    {
      const RunHereScope here;
      outputs = function_->without_writebacks()->run_parts(leaves, key_);
    }
    border->closed = true;
    std::vector<NDArray> found = gradients(outputs, heads, leaves, true);
    border->closed = false;
    return found;
  }
  // Its arrays are its own, with a tape of their own.
  void visit_saved(const std::function<void(NDArray&)>&) override {}

 private:
  void wait() const {
    if (first_output_) engine().wait_to_read(first_output_->var);
    if (outputs_.empty())
      throw EngineError({.op = function_->options().name,
                         .message = "there is no gradient of this run",
                         .because = "the run has failed"});
  }

  // Returns a buffer whose storage makes the steps of the tape compute rows; nothing is written to it.
  NDArray buffer_of(size_t input) const {
    if (wants_[input] != kGradientByRows) return {};
    const NDArray& leaf = leaves_[input];
    return sparse_zeros(StorageType::kRowSparse, leaf.spec(), leaf.device());
  }

  std::vector<NDArray> gradients(std::span<const NDArray> outputs, std::span<const NDArray> heads,
                                 std::span<const NDArray> inputs, bool create_graph) const {
    std::vector<NDArray> roots, arrived, variables;
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!heads[i] || !needs_gradient(outputs[i])) continue;
      roots.push_back(outputs[i]);
      arrived.push_back(heads[i]);
    }
    std::vector<NDArray> gradients(inputs.size());
    if (roots.empty()) return gradients;
    for (size_t i = 0; i < wants_.size(); ++i)
      if (wants_[i] != 0) variables.push_back(inputs[i]);
    const std::vector<NDArray> found = grad(roots, arrived, variables, true, create_graph, train_);
    for (size_t i = 0, next = 0; i < wants_.size(); ++i)
      if (wants_[i] != 0) gradients[i] = found[next++];
    return gradients;
  }

  const Ref<GraphCallable> function_;
  const std::vector<uint8_t> wants_;
  const bool train_;
  const RngKey key_;
  std::vector<NDArray> leaves_, outputs_;
  Ref<Chunk> first_output_;  // null: the run was not deferred
};

// The data that the task of a run owns.
struct DeferredRun {
  RunAhead::Charge charge;
  Ref<TapedRun> run;
  std::vector<NDArray> inputs, outputs;
  std::vector<uint64_t> overwrites;  // per input: its count when the task was pushed
  bool keep = false, np_shape = false;
  uint64_t interrupts_before = 0;

  void operator()() {
    charge.release();
    const InterruptScope asked(interrupts_before);
    const NpShapeScope shapes(np_shape);
    const UserCodeScope may_wait;  // for its parts, which run on this thread
    std::vector<NDArray> leaves;
    for (size_t i = 0; i < inputs.size(); ++i) leaves.push_back(inputs[i].lent(overwrites[i]));
    try {
      const std::vector<NDArray> results = run->run(std::move(leaves));
      run->end_loans();
      // Waits for all results first: a thread that waits for a published result waits for this task.
      for (const NDArray& result : results) result.wait_to_read();
      for (size_t i = 0; i < outputs.size(); ++i) outputs[i].publish(results[i]);
    } catch (...) {
      run->drop();
      throw;
    }
    if (!keep) run->drop();
  }
};

void add_once(std::vector<Var*>& vars, Var* var) {
  if (std::find(vars.begin(), vars.end(), var) == vars.end()) vars.push_back(var);
}

}  // namespace

TapedResults run_taped(const Ref<GraphCallable>& function, const RunRequest& request, bool deferred) {
  auto run = make_ref<TapedRun>(function, request);
  const bool keep = !request.wants.empty();
  TapedResults results;
  if (keep) results.run = Ref<GraphRun>(run.get());
  if (!deferred) {
    std::vector<NDArray> leaves;
    for (const NDArray& input : request.inputs) {
      input.spec();  // waits if it is pending
      leaves.push_back(input.is_sparse() ? snapshot(input).detached() : input.detached());
    }
    for (const NDArray& output : run->run(std::move(leaves))) results.outputs.push_back(output.detached());
    if (!keep) run->drop();
    return results;
  }
  const Device device = request.inputs.empty() ? Device{} : request.inputs[0].device();
  for (size_t i = 0; i < function->definition().outputs.size(); ++i)
    results.outputs.push_back(NDArray::pending(device));
  run->set_running(results.outputs[0].impl()->chunk);
  std::vector<Var*> reads, writes;
  for (const NDArray& output : results.outputs) writes.push_back(&output.var());
  const std::vector<uint8_t> written = function->written_inputs(request.train);
  for (size_t i = 0; i < written.size(); ++i) {
    if (written[i] == 0) continue;
    note_overwrite(request.inputs[i]);
    add_once(writes, &request.inputs[i].var());
  }
  for (const NDArray& input : request.inputs)
    if (std::find(writes.begin(), writes.end(), &input.var()) == writes.end()) add_once(reads, &input.var());
  Engine::Options options;
  options.name = function->task_name();
  options.cost_ns = kGuessedCostNs;
  options.where = current_location();
  auto task = std::make_shared<DeferredRun>(DeferredRun{run_ahead().charge(options.cost_ns),
                                                        run,
                                                        {request.inputs.begin(), request.inputs.end()},
                                                        results.outputs,
                                                        {},
                                                        keep,
                                                        is_np_shape(),
                                                        interrupts_so_far()});
  for (const NDArray& input : request.inputs) task->overwrites.push_back(overwrites_of(input));
  engine().push([task](TaskContext&) { (*task)(); }, {reads, writes}, options);
  return results;
}

}  // namespace hybridnet
