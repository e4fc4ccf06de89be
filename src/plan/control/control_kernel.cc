// A loop is a C++ loop over the runs of one linked plan, for any trip count: one arena serves all iterations, states
// are passed by pointer, and stacked outputs are written directly into their rows.
#include "plan/control/control_kernel.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <mutex>
#include <optional>

#include "base/front_end.h"
#include "base/hash.h"
#include "device/memory.h"
#include "engine/profile.h"
#include "graph/control/body_graph.h"
#include "hybridnet/engine.h"
#include "hybridnet/env.h"
#include "hybridnet/threads.h"
#include "kernels/control/device_steps.h"
#include "plan/control/device_loop.h"
#include "plan/control/loop_body.h"
#include "plan/control/native_loop.h"
#include "plan/graph_position.h"
#include "plan/plain_copy.h"
#include "plan/shared_kernels.h"

namespace hybridnet {
namespace {

constexpr int64_t kWorthATeamNs = 50'000;              // below this, waking a team costs more than it saves
constexpr int64_t kMaxArenaBytes = int64_t{64} << 20;  // for iterations that run in parallel
constexpr int64_t kGuessedIterations = 1024;           // for loops whose trip count is unknown before they run
constexpr int64_t kWorthNode = 8;                      // rows of a foreach that the device runs by itself
constexpr int64_t kMayNotEndNs = 1'000'000;            // for loops that may not end: too long for the calling thread

uint64_t mix(uint64_t a, uint64_t b) { return avalanche(a ^ (b + kGoldenRatio + (a << 6) + (a >> 2))); }

// A body copies each output that is an input. Removes these copies: the plan copies such outputs itself if necessary.
void give_inputs_themselves(Graph& graph) {
  static const OpRef copy{"_copy"};
  const std::vector<NodeEntry> outputs = graph.outputs();
  for (const NodeEntry& output : outputs) {
    if (output.node->op != &copy.op() || !graph.contains(output.node.get())) continue;
    const NodeEntry given = output.node->inputs[0];
    if (graph.input_index(given.node.get()) >= 0 && graph.format(given) == graph.format(output))
      graph.replace(output, given);
  }
}

struct CompiledBody {
  Ref<Plan> plan;
  Graph graph;
};

// Returns, per output, the input that the body of a loop passes on unchanged as a state; -1: none. A body that writes
// to inputs copies its states.
std::vector<int> passed_inputs(const Graph& graph, size_t num_stacked) {
  std::vector<int> passed(graph.outputs().size(), -1);
  if (!graph.writebacks().empty()) return passed;
  for (size_t i = num_stacked; i < passed.size(); ++i)
    if (graph.format(graph.outputs()[i]) == Format::kPlain)
      passed[i] = graph.input_index(graph.outputs()[i].node.get());
  return passed;
}

// Returns, per output, the input of the state whose next value it is, so that it may be written over the state; -1:
// none.
std::vector<int> replaced_inputs(const Graph& graph, const LoopSpec& loop) {
  std::vector<int> replaced(graph.outputs().size(), -1);
  for (size_t s = 0; s < loop.carries(); ++s) replaced[loop.final_carry(s)] = static_cast<int>(loop.carry(s));
  return replaced;
}

// Returns the input in whose memory this output of a cond lies; -1: none.
int shared_input(const Node& cond, std::span<const LentMemory> lent, int output) {
  const auto at = static_cast<size_t>(output);
  return at < lent.size() && lent[at] == LentMemory::kFirstState ? input_written_over(cond, output) : -1;
}

std::vector<int> replaced_inputs_of_branch(const Node& cond, std::span<const LentMemory> lent, const Graph& graph) {
  std::vector<int> replaced(graph.outputs().size(), -1);
  for (int i = 0; i < branch_of(cond).num_out; ++i) replaced[static_cast<size_t>(i)] = shared_input(cond, lent, i);
  return replaced;
}

// repeated: the plan runs many times with the same captured values, so packing weights pays even in training.
CompiledBody compile_graph(const Node& node, size_t body, const LinkContext& context, const Plan::Options& around,
                           bool repeated, std::span<const LentMemory> lent = {}) {
  const std::vector<TensorSpec> inputs = body_input_specs(node, body, context.in);
  Graph graph = body_graph(node, body, inputs, context.train);
  const PipelineScope scope(node, body);
  run_pipeline(graph, kAllStages);
  give_inputs_themselves(graph);
  Plan::Options options = around.for_body();
  options.device = context.device;
  options.frozen_weights = context.frozen_weights || repeated;
  if (repeated && body + 1 == node.subgraphs.size()) {
    options.passed = passed_inputs(graph, loop_of(node).outs());
    options.replaced = replaced_inputs(graph, loop_of(node));
  }
  if (!repeated && body > 0) options.replaced = replaced_inputs_of_branch(node, lent, graph);
  return {Plan::compile(graph, options), std::move(graph)};
}

Ref<Plan> compile_body(const Node& node, size_t body, const LinkContext& context, const Plan::Options& around,
                       bool repeated) {
  return compile_graph(node, body, context, around, repeated).plan;
}

bool may_become_native(const Node& node, const LinkContext& context) {
  return node.attrs.count(kNativeAttribute) != 0 && context.device.type != DeviceType::kGPU;
}

// True if a run waits for the device: its bodies do, or, with `reads_values`, it goes on by the value of a condition.
bool waits(const LinkContext& context, bool reads_values, std::initializer_list<const Plan*> bodies) {
  if (context.device.type != DeviceType::kGPU) return false;
  return reads_values || std::any_of(bodies.begin(), bodies.end(),
                                     [](const Plan* body) { return body != nullptr && body->waits_for_device(); });
}

constexpr int64_t kTinyIterationNs = 60;  // overhead per iteration of a small body

std::atomic<LoopMode>& chosen_mode() {
  static std::atomic<LoopMode> mode{loop_mode_from_name(environment().loop_mode)};
  return mode;
}

// The draws of an iteration depend on its number in the loop as written, not on the segments that the loop was cut
// into: the keys of nested loops add up.
RngKey key_of_iteration(const RngKey& key, const LoopSpec& loop, int64_t row) {
  return {key.seed, key.stream + static_cast<uint64_t>(loop.draw_offset + row * loop.draw_stride) * kGoldenRatio};
}
constexpr uint64_t kStreamOfCondition = 0x94d049bb133111ebu;

// False while profiling: a profile records every operator that runs.
bool runs_as_machine_code(const NativeLoop* native) {
  return native != nullptr && native->ready() && !profile::active();
}

std::string description_of(const NativeLoop* native) {
  return native == nullptr ? "" : native->ready() ? "machine code" : "machine code when it has run often";
}

// ------------------------------------------------------------------------------------------------------------- foreach
class ForeachKernel final : public ControlKernel {
 public:
  ForeachKernel(const Node& node, const LinkContext& context, const Plan::Options& around,
                std::span<const LentMemory> lent)
      : ForeachKernel(node, context, compile_graph(node, 0, context, around, true), lent) {}

  ForeachKernel(const Node& node, const LinkContext& context, CompiledBody body, std::span<const LentMemory> lent)
      : loop_{node.name, node.where},
        params_(node.params),
        random_(is_random(node)),
        body_(node.name, std::move(body.plan), p(), lent) {
    waits_ = waits(context, p().counted, {&body_.plan()});
    if (may_become_native(node, context) && p().num_carry > 0) native_ = NativeLoop::make(p(), nullptr, body.graph);
    independent_ = p().num_carry == 0 && body_.plan().written_inputs().empty() && !body_.plan().is_opaque();
    device_ = DeviceLoop::make(node, context, nullptr, body_.plan());
  }

  std::vector<Body> bodies() const override { return {{"body", &body_.plan()}}; }
  bool waits_for_device() const override { return waits_; }
  bool needs_host() const override { return body_.plan().needs_host() || (p().counted && !device_); }
  int64_t workspace_bytes() const override {
    return std::max(body_.workspace_bytes(), device_ ? device_->workspace_bytes() : 0);
  }
  int64_t cost_ns(std::span<const TensorSpec> in) const override {
    return rows_of(p(), in.empty() ? TensorSpec{} : in[0]) * (body_.plan().cost_ns() + 100);
  }
  int cores(std::span<const TensorSpec> in) const override {
    return independent_ ? cores_worth_having(cost_ns(in)) : body_.plan().cores();
  }

  void run(const KernelArgs& args) override {
    const int64_t rows = rows_of(p(), args.in.empty() ? TensorSpec{} : TensorSpec{*args.in[0].shape, args.in[0].dtype});
    if (runs_on_device(args, rows)) return;
    int64_t count = rows;
    if (p().counted && rows > 0)
      count = std::clamp<int64_t>(static_cast<int64_t>(read_number(args.in.back())), 0, rows);
    const auto lease = body_.begin(args);
    LoopBody::Run& run = *lease;
    for (const TensorRef& data : args.in.first(p().seqs()))
      run.slice_bytes.push_back(rows == 0 ? 0 : data.size() * dtype_size(data.dtype) / rows);
    if (runs_as_machine_code(native_.get())) {
      int64_t done = 0;
      try {
        run_native(*native_, body_, run, p(), count, args.out.subspan(p().outs()), &done);
      } catch (const Error&) {
        fail_in_iteration(done);
      }
      body_.clear_rows(run, count, rows);
      return;
    }
    if (const int together = iterations_at_once(count); together > 1) {
      run_together(args, run, count, together);
    } else {
      Plan::Repeated body(body_.plan());
      InterruptWatch watch;
      int64_t done = 0;
      try {
        for (; done < count; ++done) {
          check_interrupt(watch);
          step(args, body, run, count, done);
        }
      } catch (const Error&) {
        fail_in_iteration(done);
      }
      if (native_) native_->note_iterations(count);
    }
    body_.finish(run, args.out.subspan(p().outs()), count, rows);
  }
  std::string description() const override { return description_of(native_.get()); }

 private:
  const LoopSpec& p() const { return params_->as<LoopSpec>(); }
  // Few rows without a count are launched faster one after the other, and the host waits for none of them.
  bool runs_on_device(const KernelArgs& args, int64_t rows) const {
    if (!device_ || rows == 0 || (rows < kWorthNode && !p().counted)) return false;
    return device_->run(args, rows, rows, p().counted ? &args.in.back() : nullptr);
  }
  [[noreturn]] void fail_in_iteration(int64_t iteration) const {
    fail_in_body(loop_.name + ", iteration " + std::to_string(iteration));
  }

  void step(const KernelArgs& args, Plan::Repeated& body, LoopBody::Run& run, int64_t count, int64_t done) const {
    const int64_t row = p().reverse ? count - 1 - done : done;
    for (size_t k = 0; k < run.slice_bytes.size(); ++k)
      run.inputs[k] = {static_cast<char*>(args.in[k].data) + row * run.slice_bytes[k], nullptr};
    const int64_t next_row = done + 1 == count ? -1 : p().reverse ? row - 1 : row + 1;
    std::optional<GraphPositionScope> place;
    if (body_.plan().is_opaque()) place.emplace(loop_.name, loop_.where, done);
    body_.step(body, run, done, row, next_row, random_ ? key_of_iteration(args.rng, p(), row) : RngKey{});
  }

  // Returns the number of iterations to run in parallel; 1: one after the other, each with all cores. Iterations
  // without states may run in parallel, with one core and one arena each: this pays if cores would idle in the
  // operators of a small body, or if there are many iterations.
  int iterations_at_once(int64_t count) const {
    const LoopMode mode = chosen_mode().load(std::memory_order_relaxed);
    if (mode == LoopMode::kInline || !independent_ || device::current() != nullptr) return 1;
    const int most = environment().loop_ahead > 0 ? environment().loop_ahead : INT32_MAX;
    const int together = static_cast<int>(std::min<int64_t>({count, current_cores(), most}));
    if (mode == LoopMode::kAhead || together < 2) return together;
    const Plan& plan = body_.plan();
    const bool pays = count * plan.cost_ns() >= kWorthATeamNs;
    const bool even = count >= 2 * together || plan.cost_ns() < kWorthATeamNs;  // else cores idle at the end
    return pays && even && plan.arena_bytes() * together <= kMaxArenaBytes ? together : 1;
  }

  // Iterations are handed out in order, so the first one that fails is the one that would fail in a plain loop.
  void run_together(const KernelArgs& args, const LoopBody::Run& start, int64_t count, int together) const {
    std::atomic<int64_t> next{0};
    std::atomic<int64_t> failed{count};  // no iteration after it begins
    std::mutex mutex;
    std::exception_ptr failure;
    const InterruptWatch begun;
    parallel_for(together, 1, [&](int64_t, int64_t) {
      LoopBody::Run run = start;
      Plan::Repeated body(body_.plan());
      InterruptWatch watch = begun;
      for (;;) {
        const int64_t done = next.fetch_add(1, std::memory_order_relaxed);
        if (done >= failed.load(std::memory_order_relaxed)) return;
        try {
          check_interrupt(watch);
          step(args, body, run, count, done);
        } catch (...) {
          const std::lock_guard lock(mutex);
          if (done >= failed.load(std::memory_order_relaxed)) return;
          failed.store(done, std::memory_order_relaxed);
          failure = std::current_exception();
          return;
        }
      }
    });
    if (!failure) return;
    try {
      std::rethrow_exception(failure);
    } catch (const Error&) {
      fail_in_iteration(failed.load());
    }
  }

  const LoopOrigin loop_;
  const ParamsPtr params_;
  const bool random_;
  LoopBody body_;
  bool waits_ = false;
  bool independent_ = false;            // no iteration reads results of another
  std::unique_ptr<NativeLoop> native_;  // null: always interpreted
  std::unique_ptr<DeviceLoop> device_;  // null: the host runs the loop
};

// ---------------------------------------------------------------------------------------------------------- while_loop
class WhileLoopKernel final : public ControlKernel {
 public:
  WhileLoopKernel(const Node& node, const LinkContext& context, const Plan::Options& around,
                  std::span<const LentMemory> lent)
      : WhileLoopKernel(node, context, compile_graph(node, 0, context, around, true),
                        compile_graph(node, 1, context, around, true), lent) {}

  WhileLoopKernel(const Node& node, const LinkContext& context, CompiledBody condition, CompiledBody body,
                  std::span<const LentMemory> lent)
      : loop_{node.name, node.where},
        params_(node.params),
        random_(is_random(node)),
        condition_(std::move(condition.plan)),
        body_(node.name, std::move(body.plan), p(), lent) {
    waits_ = waits(context, true, {});
    if (may_become_native(node, context)) native_ = NativeLoop::make(p(), &condition.graph, body.graph);
    test_spec_ = condition_->outputs()[0].spec;
    is_opaque_ = condition_->is_opaque() || body_.plan().is_opaque();
    if (const auto whole = node.attrs.find(kWholeLimitAttribute); whole != node.attrs.end())
      whole_limit_ = std::stoll(whole->second);
    const std::vector<bool> tested = read_inputs(*node.subgraphs[0]);
    for (size_t s = 0; s < p().carries(); ++s)
      if (tested[p().carry(s)]) followed_.push_back(p().carry(s));
    device_ = DeviceLoop::make(node, context, condition_.get(), body_.plan());
  }

  bool waits_for_device() const override { return waits_; }
  std::vector<Body> bodies() const override { return {{"condition", condition_.get()}, {"body", &body_.plan()}}; }
  bool needs_host() const override { return !device_ || device_->needs_host(); }
  int64_t workspace_bytes() const override {
    return std::max(body_.workspace_bytes() + 64, device_ ? device_->workspace_bytes() : 0);
  }
  int64_t cost_ns(std::span<const TensorSpec>) const override {
    const int64_t most = p().max_iterations.value_or(INT64_MAX), trips = std::min(most, kGuessedIterations);
    const int64_t cost = trips * (body_.plan().cost_ns() + condition_->cost_ns() + (native_ ? kTinyIterationNs : 200));
    return most <= kGuessedIterations ? cost : std::max(cost, kMayNotEndNs);
  }
  int cores(std::span<const TensorSpec>) const override { return std::max(body_.plan().cores(), condition_->cores()); }

  void run(const KernelArgs& args) override {
    const int64_t given = p().counted ? limit_of_run(loop_, args.in.back()) : INT64_MAX;
    const int64_t limit = std::min(given, p().max_iterations.value_or(INT64_MAX));
    const int64_t rows = p().max_iterations.value_or(0);  // a loop without a limit stacks nothing
    const bool may_report = p().on_limit != "stop" && (whole_limit_ < 0 || limit == given);
    if (device_ && limit > 0 && runs_on_device(args, limit, rows, may_report)) return;
    const auto lease = body_.begin(args);
    LoopBody::Run& run = *lease;
    if (runs_as_machine_code(native_.get()) && !may_report) return run_as_machine_code(args, run, limit, rows);
    bind_inputs(args.in.first(p().slots()), run.test_inputs);
    TensorRef test{static_cast<char*>(args.workspace) + body_.workspace_bytes(), &test_spec_.shape, test_spec_.dtype};
    int64_t done = 0;
    bool still_holds = false;
    Plan::Repeated condition(*condition_), body(body_.plan());
    auto holds = [&] {
      RngKey key = key_of(args.rng, done);
      key.stream ^= kStreamOfCondition;
      return this->holds(condition, run, test, key);
    };
    InterruptWatch watch;
    try {
      for (;; ++done) {
        std::optional<GraphPositionScope> place;
        if (is_opaque_) place.emplace(loop_.name, loop_.where, done);
        if (done == limit || !holds()) break;
        check_interrupt(watch);
        body_.step(body, run, done, done, done + 1 < rows ? done + 1 : -1, key_of(args.rng, done));
      }
      still_holds = done == limit && may_report && holds();
    } catch (const Error&) {
      fail_in_body(loop_.name + ", iteration " + std::to_string(done));
    }
    if (native_) native_->note_iterations(done);
    if (still_holds) report(limit);
    body_.finish(run, args.out.subspan(p().outs()), done, rows);
    if (void* count = args.out.back().data) device::write_value(count, done);
  }
  std::string description() const override { return description_of(native_.get()); }

 private:
  const LoopSpec& p() const { return params_->as<LoopSpec>(); }
  void report(int64_t limit) const { report_limit(loop_, p().on_limit, whole_limit_ < 0 ? limit : whole_limit_); }
  bool runs_on_device(const KernelArgs& args, int64_t limit, int64_t rows, bool may_report) const {
    if (!device_->needs_host()) return device_->run(args, limit, rows, nullptr);
    std::optional<DeviceLoop::End> end;
    try {
      end = device_->run_in_pieces(args, limit, rows);
    } catch (const Error&) {
      fail_in_body(loop_.name);
    }
    if (end && may_report && end->holds && end->done == limit) report(limit);
    return end.has_value();
  }
  void run_as_machine_code(const KernelArgs& args, LoopBody::Run& run, int64_t limit, int64_t rows) const {
    int64_t done = 0;
    try {
      run_native(*native_, body_, run, p(), limit, args.out.subspan(p().outs()), &done);
    } catch (const Error&) {
      fail_in_body(loop_.name + ", iteration " + std::to_string(done));
    }
    body_.clear_rows(run, done, rows);
    if (void* count = args.out.back().data) *static_cast<int64_t*>(count) = done;
  }
  RngKey key_of(const RngKey& key, int64_t done) const { return random_ ? key_of_iteration(key, p(), done) : RngKey{}; }
  bool holds(Plan::Repeated& condition, LoopBody::Run& run, const TensorRef& test, RngKey key) const {
    for (size_t carry : followed_) run.test_inputs[carry] = run.inputs[carry];
    void* const outputs[] = {test.data};
    condition.run({run.test_inputs, outputs, nullptr, key, {}, run.kept});
    return is_true(test);
  }
  const LoopOrigin loop_;
  const ParamsPtr params_;
  const bool random_;
  Ref<Plan> condition_;
  LoopBody body_;
  TensorSpec test_spec_;
  bool waits_ = false;
  bool is_opaque_ = false;
  int64_t whole_limit_ = -1;            // limit of the loop that this one is a segment of; -1: it is no segment
  std::vector<size_t> followed_;        // carries that the condition reads
  std::unique_ptr<NativeLoop> native_;  // null: always interpreted
  std::unique_ptr<DeviceLoop> device_;  // null: the host runs the loop
};

// ---------------------------------------------------------------------------------------------------------------- cond
class CondKernel final : public ControlKernel {
 public:
  CondKernel(const Node& node, const LinkContext& context, const Plan::Options& around,
             std::span<const LentMemory> lent)
      : name_(node.name), where_(node.where), random_(is_random(node)), direct_pred_(direct_predicate(node)) {
    if (direct_pred_ < 0) {
      pred_ = compile_body(node, 0, context, around, false);
      pred_spec_ = pred_->outputs()[0].spec;
    }
    waits_ = waits(context, true, {});
    then_ = make_branch(node, 1, context, around, lent);
    else_ = make_branch(node, 2, context, around, lent);
    needs_host_ = !device_decides(context.device);
    for (const Plan* plan : {pred_.get(), then_.plan.get(), else_.plan.get()})
      needs_host_ = needs_host_ || (plan != nullptr && (plan->needs_host() || !plan->written_inputs().empty()));
  }

  std::vector<Body> bodies() const override {
    std::vector<Body> all{{"then branch", then_.plan.get()}, {"else branch", else_.plan.get()}};
    if (pred_) all.insert(all.begin(), {"predicate", pred_.get()});
    return all;
  }
  bool waits_for_device() const override { return waits_; }
  bool needs_host() const override { return needs_host_; }
  int64_t workspace_bytes() const override { return 64 + std::max(then_.aside_bytes, else_.aside_bytes); }
  int64_t cost_ns(std::span<const TensorSpec>) const override {
    return std::max(then_.plan->cost_ns(), else_.plan->cost_ns()) + (pred_ ? pred_->cost_ns() : 0) + 100;
  }
  int cores(std::span<const TensorSpec>) const override {
    return std::max({then_.plan->cores(), else_.plan->cores(), pred_ ? pred_->cores() : 1});
  }

  void run(const KernelArgs& args) override {
    if (!runs_on_device(args)) run_branch(args, is_true(choose(args)));
  }

 private:
  void run_branch(const KernelArgs& args, bool taken) {
    const Branch& branch = taken ? then_ : else_;
    try {
      const auto lease = spare_.take();
      std::vector<void*>& fresh = lease->fresh;
      bind_inputs(args.in, lease->inputs);
      fresh.assign(branch.plan->fresh_outputs().size(), nullptr);
      for (const auto& [output, index] : branch.first_of_fresh)
        fresh[static_cast<size_t>(index)] = args.out[static_cast<size_t>(output)].data;
      for (const Aside& aside : branch.asides)
        fresh[static_cast<size_t>(aside.fresh)] = static_cast<char*>(args.workspace) + aside.offset;
      for (const int input : branch.written_over) lease->inputs[static_cast<size_t>(input)].derived = nullptr;
      const GraphPositionScope place(name_, where_,
                                     taken ? GraphPositionScope::kThenBranch : GraphPositionScope::kElseBranch);
      branch.plan->run({lease->inputs, fresh, nullptr, key_of(args.rng, taken ? 1 : 2), {}, args.kept});
      for (const auto& [output, index] : branch.copies) {
        const TensorRef& out = args.out[static_cast<size_t>(output)];
        copy_plainly(out.data, fresh[static_cast<size_t>(index)], out.size() * dtype_size(out.dtype), name_);
      }
    } catch (const Error&) {
      fail_in_body(name_ + (taken ? ", then branch" : ", else branch"));
    }
  }

  // Both branches become IF nodes of a graph: the host visits both, and waits for no choice.
  bool runs_on_device(const KernelArgs& args) {
    device::LaunchBatch* const batch = device::LaunchBatch::current();
    if (needs_host_ || batch == nullptr) return false;
    const bool may_begin = !gave_up_.load(std::memory_order_relaxed) && batch->makes_conditions() && !profile::active();
    if (!batch->is_recording() && !may_begin) return false;
    if (batch->run_as_graph([&] { launch_both(*batch, args); })) return true;
    gave_up_.store(true, std::memory_order_relaxed);
    return false;
  }
  void launch_both(device::LaunchBatch& batch, const KernelArgs& args) {
    const TensorRef chosen = choose(args);
    const uint64_t conditions[] = {batch.new_condition(), batch.new_condition()};
    kernels::on_device::launch_branch_decision({conditions[0], conditions[1], chosen.data}, chosen.dtype);
    for (const bool taken : {true, false}) {
      batch.begin_part(device::Backend::Launch::Kind::kIf, conditions[taken ? 0 : 1]);
      run_branch(args, taken);
      if (batch.part_is_empty()) kernels::on_device::launch_nothing();
      batch.end_part();
    }
  }

  struct OutputOfFresh {
    int output, fresh;
  };
  // An output that lies in the memory of an input, which the branch reads after it has written the output.
  struct Aside {
    int fresh;
    int64_t offset;  // in the workspace
  };
  struct Branch {
    Ref<Plan> plan;
    std::vector<OutputOfFresh> first_of_fresh, copies;
    std::vector<int> written_over;  // inputs in whose memory outputs are written
    std::vector<Aside> asides;
    int64_t aside_bytes = 0;
  };
  static Branch make_branch(const Node& node, size_t index, const LinkContext& context, const Plan::Options& around,
                            std::span<const LentMemory> lent) {
    Branch branch{compile_graph(node, index, context, around, false, lent).plan, {}, {}, {}, {}, 0};
    std::vector<bool> seen(branch.plan->fresh_outputs().size());
    for (size_t i = 0; i < branch.plan->outputs().size(); ++i) {
      const auto output = static_cast<int>(branch_of(node).output_of(index - 1, i));
      const Plan::OutputInfo& info = branch.plan->outputs()[i];
      if (info.replaces_input) {
        branch.written_over.push_back(info.input);
        continue;
      }
      const int over = shared_input(node, lent, output);
      const bool is_first = !seen[static_cast<size_t>(info.fresh)];
      seen[static_cast<size_t>(info.fresh)] = true;
      if (is_first && over >= 0 && info.input != over) {
        branch.asides.push_back({info.fresh, 64 + branch.aside_bytes});
        branch.aside_bytes += (info.spec.bytes() + 63) / 64 * 64;
        branch.copies.push_back({output, info.fresh});
      } else {
        (is_first ? branch.first_of_fresh : branch.copies).push_back({output, info.fresh});
      }
    }
    return branch;
  }

  // Returns the value that decides.
  TensorRef choose(const KernelArgs& args) {
    if (direct_pred_ >= 0) return args.in[static_cast<size_t>(direct_pred_)];
    try {
      const auto lease = spare_.take();
      bind_inputs(args.in, lease->inputs);
      void* const outputs[] = {args.workspace};
      pred_->run({lease->inputs, outputs, nullptr, key_of(args.rng, 0), {}, args.kept});
    } catch (const Error&) {
      fail_in_body(name_ + ", predicate");
    }
    return {args.workspace, &pred_spec_.shape, pred_spec_.dtype};
  }

  RngKey key_of(const RngKey& key, uint64_t part) const {
    return random_ ? RngKey{key.seed, mix(key.stream, part)} : RngKey{};
  }

  const std::string name_;
  const SourceLocation where_;
  const bool random_;
  bool waits_ = false, needs_host_ = false;
  std::atomic<bool> gave_up_{false};  // a graph of the branches could not be made
  const int direct_pred_;             // slot of a predicate that is computed outside, -1: pred_ computes it
  Ref<Plan> pred_;
  TensorSpec pred_spec_;
  Branch then_, else_;
  struct BranchRun {
    std::vector<Plan::InputBinding> inputs;
    std::vector<void*> fresh;
  };
  Spare<BranchRun> spare_;
};

}  // namespace

[[noreturn]] void fail_in_body(const std::string& place) {
  try {
    throw;
  } catch (const Error& error) {
    ErrorFields fields = error.fields();
    fields.node = place + (fields.node.empty() ? "" : ": " + fields.node);
    throw Error(error.kind(), std::move(fields));
  }
}

LoopMode loop_mode_from_name(std::string_view name) {
  if (name == "inline") return LoopMode::kInline;
  if (name == "ahead") return LoopMode::kAhead;
  if (name == "auto") return LoopMode::kAuto;
  throw ValueError({.input = "loop mode", .expected = "auto, inline or ahead", .given = "'" + std::string(name) + "'"});
}

void check_interrupt(InterruptWatch& watch) {
  if (!watch.must_stop()) return;
  throw EngineError({.message = "the loop was stopped: it went on after an interrupt",
                     .because = "a loop that still runs a second after Ctrl-C may never end",
                     .fix = "give while_loop a max_iterations if its condition may hold forever"});
}

LoopMode set_loop_mode(LoopMode mode) { return chosen_mode().exchange(mode); }

namespace {

Ref<ControlKernel> make_kernel(const Node& node, const LinkContext& context, const Plan::Options& around,
                               std::span<const LentMemory> lent) {
  switch (control_kind(node)) {
    case ControlKind::kForeach:
      return Ref<ControlKernel>(new ForeachKernel(node, context, around, lent));
    case ControlKind::kWhileLoop:
      return Ref<ControlKernel>(new WhileLoopKernel(node, context, around, lent));
    default:
      return Ref<ControlKernel>(new CondKernel(node, context, around, lent));
  }
}

}  // namespace

bool ControlKernel::serves(const Node& node, std::span<const TensorSpec> in, std::span<const LentMemory> lent) const {
  if (node.subgraphs != subgraphs_ || !same_params(*node.op, node.params, params_)) return false;
  if (!std::equal(lent.begin(), lent.end(), lent_.begin(), lent_.end())) return false;
  for (size_t body = 0; body < subgraphs_.size(); ++body)
    if (body_input_specs(node, body, in) != body_inputs_[body]) return false;
  return true;
}

Ref<ControlKernel> link_control(const Node& node, const LinkContext& context, const Plan::Options& around,
                                std::span<const LentMemory> lent, Kernel* known) {
  auto* control = dynamic_cast<ControlKernel*>(known);
  if (control && control->serves(node, context.in, lent)) return Ref<ControlKernel>(control);
  Ref<ControlKernel> made = make_kernel(node, context, around, lent);
  made->params_ = node.params;
  made->lent_.assign(lent.begin(), lent.end());
  made->subgraphs_ = node.subgraphs;
  for (size_t body = 0; body < node.subgraphs.size(); ++body)
    made->body_inputs_.push_back(body_input_specs(node, body, context.in));
  return made;
}

}  // namespace hybridnet
