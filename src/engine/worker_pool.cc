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

bool costly(const QueuedTask* task) { return cores_worth_having(task->options.cost_ns) > 1; }

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

void WorkerPool::add_ready(QueuedTask* const* tasks, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    tasks[i]->sequence = next_sequence_++;
    ready_.push_back(tasks[i]);
    std::push_heap(ready_.begin(), ready_.end(), runs_after);
  }
  ready_count_.store(ready_.size(), std::memory_order_release);
}

bool WorkerPool::may_start_next() const {
  if (ready_.empty()) return false;
  if (!policy_.shares_cores || stops_ > 0 || running_costly_ == 0 || !costly(ready_.front())) return true;
  return free_cores() > 0;
}

QueuedTask* WorkerPool::take_ready() {
  if (!may_start_next()) return nullptr;
  std::pop_heap(ready_.begin(), ready_.end(), runs_after);
  QueuedTask* task = ready_.back();
  ready_.pop_back();
  ready_count_.store(ready_.size(), std::memory_order_release);
  return task;
}

// Sees to it that as many workers are awake as ready tasks may start.
void WorkerPool::call_workers() {
  if (stops_ > 0 || static_cast<size_t>(looking_) >= ready_.size() || !may_start_next()) return;
  ++looking_;
  if (!idle_.empty()) {
    Worker* worker = idle_.back();
    idle_.pop_back();
    worker->called = true;
    worker->woken.notify_one();
  } else if (static_cast<int>(workers_.size()) >= policy_.max_workers || !start_worker()) {
    --looking_;  // all busy: they take it when they are done
  }
}

// False when the system gives no more threads but others are there to do the work.
bool WorkerPool::start_worker() {
  const BlockedSignals blocked;  // inherited by the new thread
  Worker& worker = workers_.emplace_back();
  try {
    worker.thread = std::thread([this, &worker] { work(worker); });
  } catch (const std::system_error& error) {
    workers_.pop_back();
    if (!workers_.empty()) return false;
    --looking_;
    throw EngineError({.message = std::string("no thread to run tasks on: ") + error.what(),
                       .fix = "raise the limit on threads (ulimit -u), or set HYBRIDNET_ENGINE_TYPE=NaiveEngine"});
  }
  pthread_setname_np(worker.thread.native_handle(), "hybridnet-work");
  return true;
}

// One task from take to end; the lock is released while it runs.
void WorkerPool::run_and_collect(Lock& lock, QueuedTask* task) {
  const bool is_costly = costly(task);
  const int wanted = policy_.shares_cores ? cores_worth_having(task->options.cost_ns) : 1;
  ++running_;
  running_costly_ += is_costly;
  std::vector<QueuedTask*> ready;
  {
    // Ready tasks that can run beside this one get their share of the cores.
    const int sharing = 1 + static_cast<int>(std::min<size_t>(ready_.size(), policy_.max_workers - 1));
    const CoreLease lease(std::min(wanted, std::max(1, cpu_cores() / sharing)));
    call_workers();
    lock.unlock();
    run_(task, lease.cores(), ready);
  }
  lock.lock();
  --running_;
  running_costly_ -= is_costly;
  add_ready(ready.data(), ready.size());
}

void WorkerPool::work(Worker& self) {
  Lock lock(mutex_);
  while (true) {
    if (QueuedTask* task = take_ready()) {
      --looking_;
      run_and_collect(lock, task);
      ++looking_;
      call_workers();
    } else if (stops_ > 0 && ready_.empty()) {
      --looking_;
      return;
    } else {
      spin_for_work(lock);
      if (!may_start_next() && stops_ == 0) sleep(lock, self);
    }
  }
}

// Tasks often come in quick succession; the first worker out of work stays awake for the next one a little.
void WorkerPool::spin_for_work(Lock& lock) {
  if (looking_ > 1 || !ready_.empty() || stops_ > 0) return;
  lock.unlock();
  spin_until([this] { return ready_count_.load(std::memory_order_acquire) > 0; }, kSpinForWork);
  lock.lock();
}

void WorkerPool::sleep(Lock& lock, Worker& self) {
  --looking_;
  self.called = false;
  idle_.push_back(&self);
  self.woken.wait(lock, [&self] { return self.called; });  // the caller counted us as looking
}

bool WorkerPool::help() {
  if (ready_count_.load(std::memory_order_acquire) == 0) return false;
  Lock lock(mutex_);
  if (running_ > 0 || ready_.empty()) return false;
  const int64_t cost = ready_.front()->options.cost_ns;
  if (cost <= 0 || cost > kHelpLimitNs) return false;
  run_and_collect(lock, take_ready());
  call_workers();
  return true;
}

void WorkerPool::join_workers() {
  std::list<Worker> stopped;
  {
    const Lock lock(mutex_);
    ++stops_;
    stopped.swap(workers_);
    for (Worker* worker : idle_) {
      worker->called = true;
      worker->woken.notify_one();
    }
    looking_ += static_cast<int>(idle_.size());
    idle_.clear();
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
  idle_.clear();
  ready_.clear();
  ready_count_.store(0, std::memory_order_release);
  looking_ = running_ = running_costly_ = stops_ = 0;
}

}  // namespace hybridnet
