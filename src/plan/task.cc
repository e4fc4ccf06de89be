#include "plan/task.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>
#include <thread>

#include "base/interrupt.h"
#include "device/memory.h"
#include "engine/early_writes.h"
#include "engine/error_free_writes.h"
#include "engine/inline_run.h"
#include "engine/profile.h"
#include "engine/run_ahead.h"
#include "engine/waiting_caller.h"
#include "hybridnet/engine.h"
#include "hybridnet/imperative.h"
#include "hybridnet/threads.h"
#include "ndarray/release.h"
#include "plan/plan_work.h"
#include "storage/system_memory.h"

namespace hybridnet {
namespace {

constexpr size_t kStackArrays = 16;

// An array of n objects, on the stack if they fit there.
template <typename T>
class Buffer {
 public:
  explicit Buffer(size_t n) : data_(n <= kStackArrays ? stack_ : (heap_ = std::make_unique<T[]>(n)).get()) {}
  T* data() { return data_; }

 private:
  std::unique_ptr<T[]> heap_;
  T stack_[kStackArrays];
  T* data_;
};

// Takes the cores that a worker would have for the plan: the choice of a thread must not change the results' bits.
class PlanCores {
 public:
  explicit PlanCores(int cores) {
    if (cores == 1)
      alone_.emplace(1);  // leases nothing: a worker that begins beside this short run may have all cores
    else
      lease_.emplace(cores);
  }

 private:
  std::optional<CoreScope> alone_;
  std::optional<CoreLease> lease_;
};

// Ends the write of each output that is complete and shares its variable with no other array that the run writes.
class EarlyOutputs final : public Plan::OutputListener {
 public:
  EarlyOutputs(const Plan& plan, const PlanArrays& arrays, EarlyWrites& writes)
      : outputs_(arrays.outputs), writes_(writes) {
    for (const NDArray& output : outputs_) vars_.push_back(&output.var());
    for (const int input : plan.written_inputs()) vars_.push_back(&arrays.inputs[static_cast<size_t>(input)].var());
    if (arrays.residuals) vars_.push_back(&arrays.residuals.var());
    // An input may lie in the memory block of an output.
    for (const NDArray& input : arrays.inputs) vars_.push_back(&input.var());
    if (arrays.constants)
      for (const NDArray& constant : *arrays.constants) vars_.push_back(&constant.var());
    std::sort(vars_.begin(), vars_.end());
  }
  void complete(size_t fresh) override {
    Var* const var = &outputs_[fresh].var();
    const auto [begin, end] = std::equal_range(vars_.begin(), vars_.end(), var);
    if (end - begin == 1) writes_.end(*var);
  }

 private:
  const std::span<const NDArray> outputs_;
  EarlyWrites& writes_;
  std::vector<Var*> vars_;
};

void run_now(Plan& plan, const PlanArrays& arrays, RngKey key, const char* name,
             Plan::OutputListener* listener = nullptr) {
  const profile::Scope scope(name, "graph");
  const MeasuredTime::Scope measured(plan.time_of_runs(), plan.cost_ns());
  PlanWork work(plan, arrays.inputs, arrays.constants.get(), {arrays.outputs, {&arrays.residuals, 1}});
  Buffer<Plan::InputBinding> inputs(arrays.inputs.size());
  Buffer<void*> outputs(arrays.outputs.size());
  for (size_t i = 0; i < arrays.inputs.size(); ++i) {
    const NDArray& array = arrays.inputs[i];
    inputs.data()[i] = {plan.needs_values(i) ? array.data() : array.address(), array.impl()->chunk->derived()};
  }
  for (size_t i = 0; i < arrays.outputs.size(); ++i) outputs.data()[i] = arrays.outputs[i].data();
  Plan::Call call;
  call.inputs = {inputs.data(), arrays.inputs.size()};
  call.outputs = {outputs.data(), arrays.outputs.size()};
  call.residuals = arrays.residuals ? arrays.residuals.data() : nullptr;
  call.rng = key;
  call.arrays = arrays.inputs;
  call.kept = arrays.kept;
  call.listener = listener;
  plan.run(call);
  work.finish();
  release_packed(arrays.inputs);
}

// The arenas of plans that this thread is running and whose code outside the library may run other plans.
thread_local std::vector<const ArenaPool*> arenas_in_use;

class ArenaUse {
 public:
  explicit ArenaUse(const ArenaPool& arenas) { arenas_in_use.push_back(&arenas); }
  ~ArenaUse() { arenas_in_use.pop_back(); }
  ArenaUse(const ArenaUse&) = delete;
};

// Returns the variable on which runs in one arena take turns. A run inside another one must not wait for it, and gets
// another arena.
Var* turn_of(const Plan& plan) {
  Var* turn = plan.arena_bytes() > 0 ? plan.arenas().turn() : nullptr;
  const bool inside =
      turn && std::find(arenas_in_use.begin(), arenas_in_use.end(), &plan.arenas()) != arenas_in_use.end();
  return inside ? nullptr : turn;
}

// Distinct variables to write, and distinct ones to read that are not written.
class Ordering {
 public:
  Ordering(const Plan& plan, const PlanArrays& arrays)
      : reads_(arrays.inputs.size() + (arrays.constants ? arrays.constants->size() : 0)),
        writes_(arrays.outputs.size() + plan.written_inputs().size() + 2) {
    if (Var* turn = turn_of(plan)) writes_.data()[num_writes_++] = turn;
    for (const NDArray& array : arrays.outputs) writes_.data()[num_writes_++] = &array.var();
    for (const int input : plan.written_inputs()) {
      writes_.data()[num_writes_++] = &arrays.inputs[static_cast<size_t>(input)].var();
    }
    if (arrays.residuals) writes_.data()[num_writes_++] = &arrays.residuals.var();
    num_writes_ = unique(writes_.data(), num_writes_);
    for (const NDArray& array : arrays.inputs) add_read(array);
    if (arrays.constants)
      for (const NDArray& array : *arrays.constants) add_read(array);
    num_reads_ = unique(reads_.data(), num_reads_);
  }
  // Returns the variables of inputs that are written and are not outputs.
  std::vector<Var*> written_inputs(const Plan& plan, const PlanArrays& arrays) const {
    std::vector<Var*> vars;
    for (const int input : plan.written_inputs()) {
      Var* var = &arrays.inputs[static_cast<size_t>(input)].var();
      const auto is_its = [var](const NDArray& output) { return &output.var() == var; };
      if (std::none_of(arrays.outputs.begin(), arrays.outputs.end(), is_its)) vars.push_back(var);
    }
    return vars;
  }
  Engine::Access access() { return {{reads_.data(), num_reads_}, {writes_.data(), num_writes_}}; }

 private:
  void add_read(const NDArray& array) {
    Var* var = &array.var();
    if (!std::binary_search(writes_.data(), writes_.data() + num_writes_, var)) reads_.data()[num_reads_++] = var;
  }
  static size_t unique(Var** vars, size_t n) {
    std::sort(vars, vars + n);
    return static_cast<size_t>(std::unique(vars, vars + n) - vars);
  }
  Buffer<Var*> reads_, writes_;
  size_t num_reads_ = 0, num_writes_ = 0;
};

// The objects that a queued run keeps alive until it ends.
struct QueuedRun {
  RunAhead::Charge charge;
  Ref<Plan> plan;
  std::vector<NDArray> inputs, outputs;
  std::shared_ptr<const std::vector<NDArray>> constants;
  NDArray residuals;
  RngKey key;
  uint64_t interrupts_before;
  bool outputs_end_early;

  void operator()(const char* name) {
    charge.release();
    const InterruptScope asked(interrupts_before);
    const PlanArrays arrays{inputs, outputs, residuals, nullptr, constants};
    // On a GPU an instruction has only been queued when its kernel returns.
    const bool early_outputs = outputs_end_early && plan->device().type != DeviceType::kGPU;
    EarlyWrites* const writes = early_outputs ? EarlyWrites::of_running_task() : nullptr;
    if (!writes) return run_now(*plan, arrays, key, name);
    EarlyOutputs early(*plan, arrays, *writes);
    run_now(*plan, arrays, key, name, &early);
  }
};

// A task whose code may wait for arrays would hold a worker that they need, so it runs on this thread. Other threads
// may use the arrays between the end of a wait and the attempt.
void run_here(Plan& plan, const PlanArrays& arrays, RngKey key, const char* name, Engine::Access access) {
  Engine& e = engine();
  while (!e.try_begin_inline(access, {.name = name})) {
    for (Var* var : access.reads) e.wait_to_read(*var);
    for (Var* var : access.writes) e.wait_for_var(*var);
  }
  const InlineRun running(e, access);
  const CoreLease lease(plan.cores());
  const ArenaUse use(plan.arenas());
  run_now(plan, arrays, key, name);
}

// False if a task is pending after a short time. When results can be read, a worker may still be freeing the arrays of
// the last run, and it may have lost its core: this thread yields its own.
bool nothing_is_pending(const Engine& e, int64_t cost_ns) {
  if (!e.has_pending()) return true;
  constexpr int64_t kMinNs = 20'000, kPartOfWork = 50;
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(std::max(kMinNs, cost_ns / kPartOfWork));
  do {
    std::this_thread::yield();
    if (!e.has_pending()) return true;
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

// A caller that waits for each result gains nothing by a worker. Loops are left to a worker: Ctrl-C may have to stop
// them.
bool try_begin_for_waiting_caller(const Plan& plan, Engine::Access access, const Engine::Options& options) {
  constexpr int64_t kLongestNs = 200'000'000;  // Ctrl-C is noticed up to this much later
  Engine& e = engine();
  if (!WaitingCaller::is_likely() || plan.has_control() || options.cost_ns > kLongestNs) return false;
  if (!nothing_is_pending(e, options.cost_ns)) return false;
  const RunHereScope here;
  return e.try_begin_inline(access, options);
}

// Returns the exception that the run throws, or nullptr.
std::exception_ptr run_for_waiting_caller(Plan& plan, const PlanArrays& arrays, RngKey key, const char* name,
                                          Engine::Access access) {
  const RunAhead::FrontEndPause pause(run_ahead());
  const InlineRun running(engine(), access);
  const PlanCores cores(plan.cores());
  try {
    run_now(plan, arrays, key, name);
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

// Returns a task that throws the error: errors surface where results are waited for, wherever the plan ran. It keeps
// the plan and the arrays alive, because it uses their variables.
TaskFn failing(std::exception_ptr failure, const Ref<Plan>& plan, const PlanArrays& arrays) {
  struct Failed {
    std::exception_ptr failure;
    Ref<Plan> plan;
    std::vector<NDArray> inputs, outputs;
    std::shared_ptr<const std::vector<NDArray>> constants;
    NDArray residuals;
  };
  auto failed = std::make_shared<Failed>(Failed{std::move(failure),
                                                plan,
                                                {arrays.inputs.begin(), arrays.inputs.end()},
                                                {arrays.outputs.begin(), arrays.outputs.end()},
                                                arrays.constants,
                                                arrays.residuals});
  return [failed = std::move(failed)](TaskContext&) { std::rethrow_exception(failed->failure); };
}

TaskFn queued(const Ref<Plan>& plan, const PlanArrays& arrays, RngKey key, const char* name) {
  auto run = std::make_shared<QueuedRun>(QueuedRun{run_ahead().charge(plan->cost_ns()),
                                                   plan,
                                                   {arrays.inputs.begin(), arrays.inputs.end()},
                                                   {arrays.outputs.begin(), arrays.outputs.end()},
                                                   arrays.constants,
                                                   arrays.residuals,
                                                   key,
                                                   interrupts_so_far(),
                                                   arrays.outputs_end_early});
  return [run = std::move(run), name](TaskContext&) { (*run)(name); };
}

}  // namespace

void push_plan(const Ref<Plan>& plan, const PlanArrays& arrays, RngKey key, const char* name) {
  Ordering ordering(*plan, arrays);
  const Engine::Access access = ordering.access();
  if (plan->is_opaque()) return run_here(*plan, arrays, key, name, access);
  Engine::Options options;
  options.name = name;
  options.cost_ns = plan->time_of_runs().or_guess(plan->cost_ns());
  options.cores = plan->cores();
  if (plan->waits_for_device()) options.device = plan->device();
  Engine& e = engine();
  if (e.try_begin_inline(access, options)) {
    const InlineRun running(e, access);
    const PlanCores cores(plan->cores());
    run_now(*plan, arrays, key, name);
    return;
  }
  const bool ran = try_begin_for_waiting_caller(*plan, access, options);
  const std::exception_ptr failure = ran ? run_for_waiting_caller(*plan, arrays, key, name, access) : nullptr;
  if (!ran || failure) {
    options.where = current_location();
    const std::vector<Var*> sound =
        arrays.inputs_stay_sound ? ordering.written_inputs(*plan, arrays) : std::vector<Var*>();
    const ErrorFreeWrites stay_sound(sound);
    e.push(failure ? failing(failure, plan, arrays) : queued(plan, arrays, key, name), access, options);
  }
  WaitingCaller::note_work(options.cost_ns);
}

void push_zeros(const NDArray& array) {
  const NDArray writes[] = {array};
  run_task("zeros", {}, writes, array.bytes() / 16,
           [array](TaskContext&) { device::zero_memory(array.data(), array.bytes()); });
}

void push_released_zeros(const NDArray& array) {
  const NDArray writes[] = {array};
  run_task("zeros", {}, writes, array.bytes() / 64, [array](TaskContext&) {
    const bool is_pinned = array.impl()->chunk->block.use != nullptr;
    if (array.is_on_gpu() || is_pinned)
      device::zero_memory(array.data(), array.bytes());
    else if (array.bytes() > 0 && !array.impl()->chunk->is_untouched())
      zero_and_release(array.data(), array.bytes());
  });
}

}  // namespace hybridnet
