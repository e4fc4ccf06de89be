// Runs cheap tasks whose variables are free on the pushing thread, and all others on the workers of their device.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <new>
#include <thread>
#include <utility>

#include "engine/early_writes.h"
#include "engine/pending.h"
#include "engine/push_rate.h"
#include "engine/spin.h"
#include "engine/task.h"
#include "engine/task_error.h"
#include "engine/thread_counter.h"
#include "engine/var_queue.h"
#include "engine/worker_pool.h"
#include "hybridnet/engine.h"
#include "hybridnet/env.h"
#include "hybridnet/threads.h"

namespace hybridnet {
namespace {

// Sleeping and being woken costs tens of microseconds; most waits are shorter.
constexpr auto kSpinForWait = std::chrono::microseconds(20);
constexpr auto kPollForWork = std::chrono::milliseconds(10);  // by waiting threads of a pool without workers
constexpr int kMaxHelped = 256;                               // tasks of other threads that one wait for all runs
constexpr int kBulkRaisesInlineLimit = 4;

bool is_cpu(Device device) { return device.type != DeviceType::kGPU && device.type != DeviceType::kWire; }

class ThreadedEngine final : public Engine {
 public:
  explicit ThreadedEngine(int workers_per_device);
  ~ThreadedEngine() override;

  void push(TaskFn fn, Access access, const Options& options) override;
  bool try_begin_inline(Access access, const Options& options) override;
  void finish_inline(Access access) override;
  void wait_for_var(Var& var) override;
  void wait_to_read(Var& var) override;
  void wait_all() override;
  bool has_pending() const override { return !pending_.nothing(); }
  void set_bulk_size(int tasks) override;
  int bulk_size() const override { return bulk_size_.load(std::memory_order_relaxed); }
  const char* type_name() const override { return "ThreadedEnginePerDevice"; }
  void stop_workers() override;
  void start_workers() override;
  Counters counters() const override;

 private:
  using Lock = std::unique_lock<std::mutex>;

  WorkerPool& pool_of(Device device);
  std::vector<WorkerPool*> pools();
  void submit_to(WorkerPool& pool, QueuedTask* task);
  void submit(const std::vector<QueuedTask*>& tasks);
  void run_task(QueuedTask* task, int cores, std::vector<QueuedTask*>& ready);
  TaskErrorRef run_body(QueuedTask& task, int cores);
  TaskErrorRef error_of_inputs(QueuedTask& task);
  void end_accesses(QueuedTask& task, const TaskErrorRef& error, std::vector<QueuedTask*>& ready);
  class WritesOfTask;
  void end_write(Slot& slot);
  void end_task(int generation);
  void dispatch_after_inline(Access access);
  void wait_and_rethrow(Var& var, bool for_readers_too);
  void wait_for_marker(WaitMarker& marker);
  bool help();
  void drain();

  const int workers_per_device_;
  const int64_t base_inline_limit_ns_ = environment().inline_limit_ns;
  std::atomic<int64_t> inline_limit_ns_{base_inline_limit_ns_};
  std::atomic<int> bulk_size_{0};
  std::atomic<uint64_t> queued_{0};
  std::atomic<uint64_t> failed_{0};
  ThreadCounter inlined_;

  std::mutex mutex_;  // variables' queues and errors, the ledger, other_pools_
  ErrorLedger errors_;
  Pending pending_;
  pid_t process_;
  PushRate push_rate_;  // under cpu_pool_'s mutex
  WorkerPool cpu_pool_;
  std::map<std::pair<DeviceType, int>, std::unique_ptr<WorkerPool>> other_pools_;
};

int cpu_workers(int workers_asked) { return workers_asked > 0 ? workers_asked : std::max(2, cpu_cores()); }

ThreadedEngine::ThreadedEngine(int workers_per_device)
    : workers_per_device_(workers_per_device > 0 ? workers_per_device : environment().workers),
      process_(getpid()),
      cpu_pool_(
          {.max_workers = cpu_workers(workers_per_device_),
           .shares_cores = true,
           .users_push =
               [this] { return push_rate_.are_busy(queued_.load(std::memory_order_relaxed), pending_.count()); }},
          [this](QueuedTask* task, int cores, std::vector<QueuedTask*>& ready) { run_task(task, cores, ready); }) {}

ThreadedEngine::~ThreadedEngine() {
  start_workers();
  for (WorkerPool* pool : pools()) pool->resume(/*however_often_stopped=*/true);
  drain();
}

// --- pushing -------------------------------------------------------------------------------------------------------

void ThreadedEngine::push(TaskFn fn, Access access, const Options& options) {
  check_access(access, options);
  auto made = std::make_unique<QueuedTask>(std::move(fn), access, options);
  QueuedTask* task = nullptr;
  bool ready;
  WorkerPool* pool = nullptr;
  {
    // One push at a time: if two tasks entered their variables' queues interleaved, each could wait for the other.
    const Lock lock(mutex_);
    pool = &pool_of(options.device);  // may throw; nothing below does
    task = made.release();            // deleted by run_task()
    task->generation = pending_.add(RunningTask::generation(this));
    task->waiting = 1;
    for (Slot& slot : task->slots()) task->waiting += VarQueue::acquire_or_enqueue(slot) ? 0 : 1;
    ready = --task->waiting == 0;
  }
  queued_.fetch_add(1, std::memory_order_relaxed);
  if (ready) submit_to(*pool, task);
}

void ThreadedEngine::submit_to(WorkerPool& pool, QueuedTask* task) {
  pool.submit(&task, 1);
  // The system gives no threads. Inside a task, the ready tasks run after that task has ended.
  while (pool.has_no_threads() && !TaskScope::inside() && pool.help()) {
  }
}

// Under mutex_.
WorkerPool& ThreadedEngine::pool_of(Device device) {
  if (is_cpu(device)) return cpu_pool_;
  const auto [place, is_new] = other_pools_.try_emplace({device.type, device.id});
  std::unique_ptr<WorkerPool>& pool = place->second;
  if (!is_new) return *pool;
  // The order of transfers is the same in all processes of a group, so one worker waits for them, one after the other.
  const int workers = device.type == DeviceType::kWire ? 1 : std::max(1, workers_per_device_);
  const WorkerPool::Policy policy{.max_workers = workers, .shares_cores = false};
  try {
    pool = std::make_unique<WorkerPool>(
        policy, [this](QueuedTask* task, int cores, auto& ready) { run_task(task, cores, ready); });
  } catch (...) {
    other_pools_.erase(place);
    throw;
  }
  return *pool;
}

std::vector<WorkerPool*> ThreadedEngine::pools() {
  const Lock lock(mutex_);
  std::vector<WorkerPool*> all{&cpu_pool_};
  for (auto& [device, pool] : other_pools_) all.push_back(pool.get());
  return all;
}

bool ThreadedEngine::try_begin_inline(Access access, const Options& options) {
  if (!is_cpu(options.device)) return false;
  if (options.cost_ns >= inline_limit_ns_.load(std::memory_order_relaxed) && !RunHereScope::active()) return false;
  size_t reads = 0;
  size_t writes = 0;
  while (reads < access.reads.size() && VarQueue::try_acquire_read(*access.reads[reads])) ++reads;
  if (reads == access.reads.size()) {
    while (writes < access.writes.size() && VarQueue::try_acquire_write(*access.writes[writes])) ++writes;
    if (writes == access.writes.size()) {
      TaskScope::enter();
      inlined_.increment();
      return true;
    }
  }
  // Release the acquired variables; other tasks may have been queued for them meanwhile.
  bool waited_for = false;
  for (Var* var : access.reads.first(reads)) waited_for |= VarQueue::release_read(*var);
  for (Var* var : access.writes.first(writes)) waited_for |= VarQueue::cancel_write(*var);
  if (waited_for) dispatch_after_inline(access);
  return false;
}

void ThreadedEngine::finish_inline(Access access) {
  TaskScope::leave();
  bool waited_for = false;
  for (Var* var : access.writes) waited_for |= VarQueue::release_write(*var);
  for (Var* var : access.reads) waited_for |= VarQueue::release_read(*var);
  if (waited_for) dispatch_after_inline(access);
}

void ThreadedEngine::dispatch_after_inline(Access access) {
  std::vector<QueuedTask*> ready;
  {
    const Lock lock(mutex_);
    for (Var* var : access.writes) VarQueue::dispatch(*var, ready);
    for (Var* var : access.reads) VarQueue::dispatch(*var, ready);
  }
  submit(ready);
}

void ThreadedEngine::submit(const std::vector<QueuedTask*>& tasks) {
  for (QueuedTask* task : tasks) {
    WorkerPool* pool;
    {
      const Lock lock(mutex_);
      pool = &pool_of(task->options.device);
    }
    submit_to(*pool, task);
  }
}

class ThreadedEngine::WritesOfTask final : public EarlyWrites {
 public:
  WritesOfTask(ThreadedEngine& engine, QueuedTask& task) : engine_(engine), task_(task) {}
  void end(Var& var) override {
    for (Slot& slot : task_.slots())
      if (slot.var == &var && slot.write && !slot.ended) return engine_.end_write(slot);
  }

 private:
  ThreadedEngine& engine_;
  QueuedTask& task_;
};

void ThreadedEngine::end_write(Slot& slot) {
  slot.ended = true;
  if (!VarQueue::release(slot)) return;
  std::vector<QueuedTask*> ready;
  {
    const Lock lock(mutex_);
    VarQueue::dispatch(*slot.var, ready);
  }
  submit(ready);
}

// --- running -------------------------------------------------------------------------------------------------------

void ThreadedEngine::run_task(QueuedTask* task, int cores, std::vector<QueuedTask*>& ready) {
  TaskErrorRef error = run_body(*task, cores);
  if (error) failed_.fetch_add(1, std::memory_order_relaxed);
  const int generation = task->generation;
  const Device device = task->options.device;
  end_accesses(*task, error, ready);
  delete task;  // and all that it kept alive, its variables included
  error = nullptr;
  // Tasks of another device go to their own workers.
  std::vector<QueuedTask*> of_other_pools;
  std::erase_if(ready, [&](QueuedTask* next) {
    const Device wanted = next->options.device;
    const bool other = is_cpu(wanted) ? !is_cpu(device) : wanted != device;
    if (other) of_other_pools.push_back(next);
    return other;
  });
  submit(of_other_pools);
  end_task(generation);
}

TaskErrorRef ThreadedEngine::run_body(QueuedTask& task, int cores) {
  if (TaskErrorRef error = error_of_inputs(task)) return error;
  const TaskScope inside;
  const RunningTask running(this, task.generation);
  const LocationScope location(task.options.where);
  WritesOfTask writes(*this, task);
  const EarlyWrites::Scope early(&writes);
  try {
    TaskContext context{.device = task.options.device, .cores = cores};
    task.fn(context);
    return nullptr;
  } catch (...) {
    TaskErrorRef error = capture_task_error(task.options);
    const Lock lock(mutex_);
    errors_.add(error);
    return error;
  }
}

TaskErrorRef ThreadedEngine::error_of_inputs(QueuedTask& task) {
  bool any = false;
  for (const Slot& slot : task.slots()) any |= VarQueue::has_error_bit(*slot.var);
  if (!any) return nullptr;
  const Lock lock(mutex_);
  for (const Slot& slot : task.slots()) {
    if (TaskErrorRef error = VarQueue::error(*slot.var)) return error;
  }
  return nullptr;
}

void ThreadedEngine::end_accesses(QueuedTask& task, const TaskErrorRef& error, std::vector<QueuedTask*>& ready) {
  if (error) {
    const Lock lock(mutex_);
    for (const Slot& slot : task.slots()) {
      if (slot.write && slot.keeps_errors && !slot.ended) VarQueue::set_error(*slot.var, error);
    }
  }
  bool waited_for = false;
  for (const Slot& slot : task.slots())
    if (!slot.ended) waited_for |= VarQueue::release(slot);
  if (!waited_for) return;
  const Lock lock(mutex_);
  for (const Slot& slot : task.slots())
    if (!slot.ended) VarQueue::dispatch(*slot.var, ready);
}

void ThreadedEngine::end_task(int generation) {
  if (!pending_.remove(generation)) return;
  const Lock lock(mutex_);
  pending_.announce_empty(generation);
}

// --- waiting -------------------------------------------------------------------------------------------------------

void ThreadedEngine::wait_for_var(Var& var) {
  TaskScope::require_outside("wait_for_var");
  if (!var.idle()) wait_and_rethrow(var, /*for_readers_too=*/true);
}

void ThreadedEngine::wait_to_read(Var& var) {
  TaskScope::require_outside("wait_to_read");
  if (!var.readable()) wait_and_rethrow(var, /*for_readers_too=*/false);
}

void ThreadedEngine::wait_and_rethrow(Var& var, bool for_readers_too) {
  WaitMarker marker(var, for_readers_too);
  bool waits;
  {
    const Lock lock(mutex_);
    waits = !VarQueue::acquire_or_enqueue(marker);
  }
  if (waits) wait_for_marker(marker);
  TaskErrorRef error;
  {
    // The lock also keeps the marker alive until the thread that signals it has finished with it.
    const Lock lock(mutex_);
    error = VarQueue::take_error(var);
    if (error) error->thrown = true;
  }
  if (error) throw_copy(*error);
}

void ThreadedEngine::wait_for_marker(WaitMarker& marker) {
  auto done = [&marker] { return marker.done.load(std::memory_order_acquire); };
  for (;;) {
    while (!done() && help()) {
    }
    if (spin_until(done, kSpinForWait)) return;
    Lock lock(mutex_);
    if (!cpu_pool_.unattended()) return marker.signaled.wait(lock, done);
    if (marker.signaled.wait_for(lock, kPollForWork, done)) return;
  }
}

// Runs a ready task that no worker will run, or for which a worker would have to be woken. False: there is none.
bool ThreadedEngine::help() {
  if (cpu_pool_.help()) return true;
  if (!cpu_pool_.unattended()) return false;
  const std::vector<WorkerPool*> all = pools();
  return std::any_of(all.begin(), all.end(), [](WorkerPool* pool) { return pool->unattended() && pool->help(); });
}

void ThreadedEngine::wait_all() {
  TaskScope::require_outside("wait_all");
  drain();
  TaskErrorRef first;
  {
    const Lock lock(mutex_);
    first = errors_.clear();
  }
  if (first) throw_copy(*first);
}

// Waits for the tasks pushed before, and for those that they push; not for tasks that other threads push meanwhile.
void ThreadedEngine::drain() {
  auto nothing = [this] { return pending_.nothing(); };
  for (int helped = 0; helped < kMaxHelped && !nothing() && help(); ++helped) {
  }
  if (spin_until(nothing, kSpinForWait)) return;
  Lock lock(mutex_);
  Pending::Wait wait(pending_);
  while (!wait.over()) {
    if (!cpu_pool_.unattended()) {
      wait.sleep(lock);
      continue;
    }
    lock.unlock();
    const bool helped = help();
    lock.lock();
    if (!helped) wait.sleep_for(lock, kPollForWork);
  }
}

// --- life ----------------------------------------------------------------------------------------------------------

void ThreadedEngine::set_bulk_size(int tasks) {
  bulk_size_.store(std::max(tasks, 0), std::memory_order_relaxed);
  const int64_t limit = base_inline_limit_ns_ * (tasks > 0 ? kBulkRaisesInlineLimit : 1);
  inline_limit_ns_.store(limit, std::memory_order_relaxed);
}

void ThreadedEngine::stop_workers() {
  if (TaskScope::inside()) return;  // the current task would have to end first
  drain();
  for (WorkerPool* pool : pools()) pool->join_workers();
}

void ThreadedEngine::start_workers() {
  if (process_ != getpid()) {
    // The child of a fork. The other threads do not exist here, so their tasks and waits are dropped.
    process_ = getpid();
    new (&mutex_) std::mutex();
    new (&pending_) Pending();
    if (RunningTask::is_of(this)) RunningTask::set_generation(pending_.add(Pending::kYoungest));
    for (WorkerPool* pool : pools()) pool->forget_after_fork();
  }
  for (WorkerPool* pool : pools()) pool->resume();
}

Engine::Counters ThreadedEngine::counters() const {
  return {.inlined = inlined_.total(), .queued = queued_.load(), .failed = failed_.load()};
}

}  // namespace

std::unique_ptr<Engine> make_threaded_engine(int workers_per_device) {
  return std::make_unique<ThreadedEngine>(workers_per_device);
}

}  // namespace hybridnet
