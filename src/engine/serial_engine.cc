// Runs each task on the thread that pushes it, before push() returns: for debugging and for tests.
//
// The promises are those of the threaded engine; errors, too, surface at the next wait. Threads that access the same
// variable exclude each other. A task that is pushed inside a task runs after that task has ended.
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <new>
#include <utility>

#include "engine/pending.h"
#include "engine/run_ahead.h"
#include "engine/task.h"
#include "engine/task_error.h"
#include "engine/thread_counter.h"
#include "engine/var_queue.h"
#include "hybridnet/engine.h"
#include "hybridnet/threads.h"

namespace hybridnet {
namespace {

class SerialEngine final : public Engine {
 public:
  ~SerialEngine() override = default;  // no task is ever pending here
  void push(TaskFn fn, Access access, const Options& options) override;
  bool try_begin_inline(Access access, const Options& options) override;
  void finish_inline(Access access) override;
  void wait_for_var(Var& var) override;
  void wait_to_read(Var& var) override;
  void wait_all() override;
  bool has_pending() const override { return !pending_.nothing(); }
  void set_bulk_size(int tasks) override { bulk_size_ = std::max(tasks, 0); }
  int bulk_size() const override { return bulk_size_; }
  const char* type_name() const override { return "NaiveEngine"; }
  void stop_workers() override {}
  void start_workers() override;  // only repairs the child of a fork
  Counters counters() const override;

 private:
  using Lock = std::unique_lock<std::mutex>;
  struct Deferred {
    SerialEngine* engine;
    std::unique_ptr<QueuedTask> task;
  };
  // Pushed by this thread inside a task; run after its outermost task has ended.
  static thread_local std::deque<Deferred> deferred_;

  void run_deferred();
  void run(QueuedTask& task);
  TaskErrorRef run_body(QueuedTask& task);
  void acquire_all(QueuedTask& task);
  bool try_acquire_all(QueuedTask& task);
  void announce_release();
  void wait_and_rethrow(Var& var, bool for_readers_too);

  std::atomic<int> bulk_size_{0};
  std::atomic<uint64_t> queued_{0};
  std::atomic<uint64_t> failed_{0};
  ThreadCounter inlined_;
  std::mutex mutex_;  // variables' errors, the ledger
  ErrorLedger errors_;
  Pending pending_;
  std::atomic<int> blocked_{0};  // threads asleep until a variable is released
  std::condition_variable released_;
  pid_t process_ = getpid();
};

thread_local std::deque<SerialEngine::Deferred> SerialEngine::deferred_;

void SerialEngine::push(TaskFn fn, Access access, const Options& options) {
  check_access(access, options);
  auto task = std::make_unique<QueuedTask>(std::move(fn), access, options);
  queued_.fetch_add(1, std::memory_order_relaxed);
  {
    const Lock lock(mutex_);
    task->generation = pending_.add(RunningTask::generation(this));
  }
  if (TaskScope::inside()) {
    deferred_.push_back({this, std::move(task)});
    return;
  }
  run(*task);
  task.reset();
  run_deferred();
}

// First in, first out; these tasks may push more.
void SerialEngine::run_deferred() {
  while (!TaskScope::inside() && !deferred_.empty()) {
    const Deferred next = std::move(deferred_.front());
    deferred_.pop_front();
    next.engine->run(*next.task);
  }
}

void SerialEngine::run(QueuedTask& task) {
  acquire_all(task);
  if (const TaskErrorRef error = run_body(task)) {
    failed_.fetch_add(1, std::memory_order_relaxed);
    const Lock lock(mutex_);
    for (const Slot& slot : task.slots()) {
      if (slot.write && slot.keeps_errors) VarQueue::set_error(*slot.var, error);
    }
  }
  for (const Slot& slot : task.slots()) VarQueue::release(slot);
  announce_release();
  if (!pending_.remove(task.generation)) return;
  const Lock lock(mutex_);
  pending_.announce_empty(task.generation);
}

TaskErrorRef SerialEngine::run_body(QueuedTask& task) {
  {
    const Lock lock(mutex_);
    for (const Slot& slot : task.slots()) {
      if (TaskErrorRef error = VarQueue::error(*slot.var)) return error;
    }
  }
  const TaskScope inside;
  const RunningTask running(this, task.generation);
  const LocationScope location(task.options.where);
  try {
    const CoreLease lease(cores_worth_having(task.options));
    TaskContext context{.device = task.options.device, .cores = lease.cores()};
    task.fn(context);
    return nullptr;
  } catch (...) {
    TaskErrorRef error = capture_task_error(task.options);
    const Lock lock(mutex_);
    errors_.add(error);
    return error;
  }
}

// Takes all variables or none, so that threads that need each other's variables cannot deadlock.
bool SerialEngine::try_acquire_all(QueuedTask& task) {
  const std::span<Slot> slots = task.slots();
  for (size_t i = 0; i < slots.size(); ++i) {
    if (VarQueue::try_acquire(slots[i])) continue;
    for (const Slot& taken : slots.first(i)) {
      taken.write ? VarQueue::cancel_write(*taken.var) : VarQueue::release_read(*taken.var);
    }
    return false;
  }
  return true;
}

void SerialEngine::acquire_all(QueuedTask& task) {
  if (try_acquire_all(task)) return;
  const RunAhead::FrontEndPause pause(run_ahead());  // the holder of the variables may need a lock of this thread
  Lock lock(mutex_);
  blocked_.fetch_add(1);
  released_.wait(lock, [&] { return try_acquire_all(task); });
  blocked_.fetch_sub(1);
}

// A thread increments blocked_ before it looks at the variables for the last time and sleeps.
void SerialEngine::announce_release() {
  if (blocked_.fetch_add(0) == 0)
    return;  // a write access: it or the sleeper's write comes first, so one thread sees the other
  const Lock lock(mutex_);
  released_.notify_all();
}

bool SerialEngine::try_begin_inline(Access access, const Options&) {
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
  for (Var* var : access.reads.first(reads)) VarQueue::release_read(*var);
  for (Var* var : access.writes.first(writes)) VarQueue::cancel_write(*var);
  announce_release();
  return false;
}

void SerialEngine::finish_inline(Access access) {
  TaskScope::leave();
  for (Var* var : access.writes) VarQueue::release_write(*var);
  for (Var* var : access.reads) VarQueue::release_read(*var);
  announce_release();
  run_deferred();
}

void SerialEngine::wait_for_var(Var& var) {
  TaskScope::require_outside("wait_for_var");
  if (!var.idle()) wait_and_rethrow(var, /*for_readers_too=*/true);
}

void SerialEngine::wait_to_read(Var& var) {
  TaskScope::require_outside("wait_to_read");
  if (!var.readable()) wait_and_rethrow(var, /*for_readers_too=*/false);
}

void SerialEngine::wait_and_rethrow(Var& var, bool for_readers_too) {
  const WaitMarker marker(var, for_readers_too);
  TaskErrorRef error;
  {
    Lock lock(mutex_);
    blocked_.fetch_add(1);
    released_.wait(lock, [&] { return VarQueue::try_acquire(marker); });
    blocked_.fetch_sub(1);
    error = VarQueue::take_error(var);
    if (error) error->thrown = true;
  }
  if (error) throw_copy(*error);
}

void SerialEngine::wait_all() {
  TaskScope::require_outside("wait_all");
  TaskErrorRef first;
  {
    Lock lock(mutex_);
    Pending::Wait(pending_).sleep(lock);
    first = errors_.clear();
  }
  if (first) throw_copy(*first);
}

void SerialEngine::start_workers() {
  if (process_ == getpid()) return;
  process_ = getpid();
  new (&mutex_) std::mutex();  // other threads of the parent may have held it or waited for it
  new (&released_) std::condition_variable();
  blocked_.store(0);
  new (&pending_) Pending();
  if (RunningTask::is_of(this)) RunningTask::set_generation(pending_.add(Pending::kYoungest));
}

Engine::Counters SerialEngine::counters() const {
  return {.inlined = inlined_.total(), .queued = queued_.load(), .failed = failed_.load()};
}

}  // namespace

std::unique_ptr<Engine> make_serial_engine() { return std::make_unique<SerialEngine>(); }

}  // namespace hybridnet
