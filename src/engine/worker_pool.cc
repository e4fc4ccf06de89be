#include "engine/worker_pool.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <string>
#include <system_error>
#include <utility>

#include "engine/spin.h"
#include "hybridnet/threads.h"

namespace hybridnet {
namespace {

constexpr int64_t kHelpLimitNs = 2'000'000;
constexpr auto kSpinForWork = std::chrono::microseconds(10);

bool runs_after(const QueuedTask* a, const QueuedTask* b) {  // the heap's "less"
  if (a->options.priority != b->options.priority) return a->options.priority < b->options.priority;
  return a->sequence > b->sequence;
}

// Signals are for the user's threads: a KeyboardInterrupt must interrupt them, not a kernel.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace

WorkerPool::WorkerPool(Policy policy, Run run) : policy_(policy), run_(std::move(run)) {}

WorkerPool::~WorkerPool() { join_workers(); }

void WorkerPool::submit(QueuedTask* const* tasks, size_t count) {
  if (count == 0) return;
  const Lock lock(mutex_);
  add_ready(tasks, count);
  call_workers();
}

bool WorkerPool::parallel(const QueuedTask* task) const {
  return policy_.shares_cores && cores_worth_having(task->options.cost_ns) > 1;
}

void WorkerPool::add_ready(QueuedTask* const* tasks, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    tasks[i]->sequence = next_sequence_++;
    Heap& heap = parallel(tasks[i]) ? parallel_ : serial_;
    heap.push_back(tasks[i]);
    std::push_heap(heap.begin(), heap.end(), runs_after);
  }
  ready_count_.fetch_add(count, std::memory_order_release);
}

bool WorkerPool::parallel_may_start() const {
  return !parallel_.empty() && (stops_ > 0 || running_parallel_ == 0 || free_cores() > 0);
}

// The heap whose first task comes next for a worker of this kind; null if it has to wait.
WorkerPool::Heap* WorkerPool::next_heap(bool opens_teams) {
  if (!opens_teams || !parallel_may_start()) return serial_.empty() ? nullptr : &serial_;
  return serial_.empty() || runs_after(serial_.front(), parallel_.front()) ? &parallel_ : &serial_;
}

QueuedTask* WorkerPool::take_ready(bool opens_teams) {
  Heap* heap = next_heap(opens_teams);
  if (!heap) return nullptr;
  std::pop_heap(heap->begin(), heap->end(), runs_after);
  QueuedTask* task = heap->back();
  heap->pop_back();
  ready_count_.fetch_sub(1, std::memory_order_release);
  return task;
}

// Sees to it that as many workers are awake as ready tasks may start; each worker that takes one calls the next.
void WorkerPool::call_workers() {
  if (stops_ > 0) return;
  if (parallel_may_start() && looking_for_teams_ == 0 && call_worker(/*for_parallel=*/true)) return;
  if (static_cast<size_t>(looking_) < serial_.size()) call_worker(/*for_parallel=*/false);
}

// False if all that may do it are busy: they take it when they are done.
bool WorkerPool::call_worker(bool for_parallel) {
  for (Worker& worker : workers_) {
    if (!worker.asleep || (for_parallel && !worker.opens_teams)) continue;
    wake(worker);
    return true;
  }
  const int started = static_cast<int>(workers_.size());
  return started < (for_parallel ? policy_.max_teams : policy_.max_workers) && start_worker();
}

void WorkerPool::wake(Worker& worker) {
  worker.asleep = false;
  count_looking(worker, 1);
  worker.woken.notify_one();
}

void WorkerPool::count_looking(const Worker& worker, int change) {
  looking_ += change;
  if (worker.opens_teams) looking_for_teams_ += change;
}

// False when the system gives no more threads but others are there to do the work.
bool WorkerPool::start_worker() {
  const BlockedSignals blocked;  // inherited by the new thread
  Worker& worker = workers_.emplace_back();
  worker.opens_teams = static_cast<int>(workers_.size()) <= policy_.max_teams;
  try {
    worker.thread = std::thread([this, &worker] { work(worker); });
  } catch (const std::system_error& error) {
    workers_.pop_back();
    if (!workers_.empty()) return false;
    throw EngineError({.message = std::string("no thread to run tasks on: ") + error.what(),
                       .fix = "raise the limit on threads (ulimit -u), or set HYBRIDNET_ENGINE_TYPE=NaiveEngine"});
  }
  count_looking(worker, 1);
  pthread_setname_np(worker.thread.native_handle(), "hybridnet-work");
  return true;
}

// One task from take to end; the lock is released while it runs.
void WorkerPool::run_and_collect(Lock& lock, QueuedTask* task) {
  const bool is_parallel = parallel(task);
  ++running_;
  running_parallel_ += is_parallel;
  std::vector<QueuedTask*> ready;
  {
    // Parallel tasks that can run beside this one get their share of the cores.
    const int teams = 1 + static_cast<int>(std::min<size_t>(parallel_.size(), policy_.max_teams - 1));
    const int wanted = is_parallel ? cores_worth_having(task->options.cost_ns) : 1;
    const CoreLease lease(std::min(wanted, std::max(1, cpu_cores() / teams)));
    call_workers();
    lock.unlock();
    run_(task, lease.cores(), ready);
  }
  lock.lock();
  --running_;
  running_parallel_ -= is_parallel;
  add_ready(ready.data(), ready.size());
}

void WorkerPool::work(Worker& self) {
  Lock lock(mutex_);
  while (true) {
    if (QueuedTask* task = take_ready(self.opens_teams)) {
      count_looking(self, -1);
      run_and_collect(lock, task);
      count_looking(self, 1);
      call_workers();
    } else if (stops_ > 0 && (nothing_ready() || !self.opens_teams)) {
      count_looking(self, -1);
      return;
    } else {
      spin_for_work(lock);
      if (!next_heap(self.opens_teams) && stops_ == 0) sleep(lock, self);
    }
  }
}

// Tasks often come in quick succession; the first worker out of work stays awake for the next one a little.
void WorkerPool::spin_for_work(Lock& lock) {
  if (looking_ > 1 || !nothing_ready() || stops_ > 0) return;
  lock.unlock();
  spin_until([this] { return ready_count_.load(std::memory_order_acquire) > 0; }, kSpinForWork);
  lock.lock();
}

void WorkerPool::sleep(Lock& lock, Worker& self) {
  count_looking(self, -1);
  self.asleep = true;
  self.woken.wait(lock, [&self] { return !self.asleep; });  // the caller counted us as looking
}

bool WorkerPool::help() {
  if (ready_count_.load(std::memory_order_acquire) == 0) return false;
  Lock lock(mutex_);
  const Heap* heap = next_heap(/*opens_teams=*/true);
  if (running_ > 0 || !heap) return false;
  const int64_t cost = heap->front()->options.cost_ns;
  if (cost <= 0 || cost > kHelpLimitNs) return false;
  run_and_collect(lock, take_ready(/*opens_teams=*/true));
  call_workers();
  return true;
}

void WorkerPool::join_workers() {
  std::list<Worker> stopped;
  {
    const Lock lock(mutex_);
    ++stops_;
    stopped.swap(workers_);
    for (Worker& worker : stopped) {
      if (worker.asleep) wake(worker);
    }
  }
  for (Worker& worker : stopped) worker.thread.join();
}

void WorkerPool::resume(bool however_often_stopped) {
  const Lock lock(mutex_);
  stops_ = however_often_stopped ? 0 : std::max(0, stops_ - 1);
  call_workers();
}

void WorkerPool::forget_after_fork() {
  new (&mutex_) std::mutex();  // another thread of the parent may have held it
  // Threads that could not be stopped (the fork came from inside a task) do not exist here. They can be neither joined
  // nor destroyed: they stay as they are.
  if (!workers_.empty()) new std::list<Worker>(std::move(workers_));
  workers_.clear();
  serial_.clear();
  parallel_.clear();
  ready_count_.store(0, std::memory_order_release);
  looking_ = looking_for_teams_ = running_ = running_parallel_ = stops_ = 0;
}

}  // namespace hybridnet
