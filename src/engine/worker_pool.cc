#include "engine/worker_pool.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <new>
#include <system_error>
#include <utility>

#include "engine/spin.h"
#include "hybridnet/threads.h"

namespace hybridnet {
namespace {

constexpr int64_t kHelpLimitNs = 2'000'000;
// Tasks of at least this cost run faster side by side with a share of the cores each than one after the other.
constexpr int64_t kLongNs = 10'000'000;
// A short task waits this long for a busy worker. Waking another worker takes as long, and when the operators of a
// chain change between threads, the team of the first thread falls asleep between them.
constexpr int64_t kPatienceNs = 100'000;
// Longer tasks lose little when one thread of their team shares its core with another thread.
constexpr int64_t kBriefNs = 1'000'000;
constexpr int64_t kForeverNs = 1'000'000'000'000;  // sums of it must not overflow
constexpr auto kSpinForWork = std::chrono::microseconds(10);

bool runs_after(const QueuedTask* a, const QueuedTask* b) {  // the heap's "less"
  if (a->options.priority != b->options.priority) return a->options.priority < b->options.priority;
  return a->sequence > b->sequence;
}

bool is_long(const QueuedTask* task) { return task->options.cost_ns >= kLongNs; }

// Expected duration.
int64_t expected_ns(const QueuedTask* task) {
  const int64_t cost = task->options.cost_ns;
  return cost > 0 ? cost / std::min(cores_worth_having(task->options), cpu_cores()) : kForeverNs;
}

// Blocks signals for the thread and those that it starts: a KeyboardInterrupt must reach the user's threads.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    // Not those of a fault: the system would end the process without calling their handlers.
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) sigdelset(&all, fault);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace

WorkerPool::WorkerPool(Policy policy, Run run)
    : policy_(policy), run_(std::move(run)), max_workers_(policy.max_workers) {}

WorkerPool::~WorkerPool() { join_workers(); }

void WorkerPool::submit(QueuedTask* const* tasks, size_t count) {
  if (count == 0) return;
  const Lock lock(mutex_);
  add_ready(tasks, count);
  call_workers();
}

WorkerPool::Kind WorkerPool::kind_of(const QueuedTask* task) const {
  if (!policy_.shares_cores) return kSerial;
  if (task->options.cost_ns > 0 && cores_worth_having(task->options) > 1) return kParallel;
  const bool is_short = task->options.cost_ns > 0 && cores_worth_having(task->options.cost_ns) == 1;
  return is_short || policy_.max_workers == 1 ? kSerial : kLasting;
}

void WorkerPool::add_ready(QueuedTask* const* tasks, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    tasks[i]->sequence = next_sequence_++;
    const Kind kind = kind_of(tasks[i]);
    if (kind == kParallel && is_long(tasks[i])) ++ready_long_;
    if (kind == kSerial) ready_serial_ns_ += expected_ns(tasks[i]);
    ready_[kind].push_back(tasks[i]);
    std::push_heap(ready_[kind].begin(), ready_[kind].end(), runs_after);
  }
  ready_count_.fetch_add(count, std::memory_order_release);
}

// True if this worker may start the first task of this kind now.
bool WorkerPool::may_take(int worker, Kind kind) const {
  if (ready_[kind].empty()) return false;
  if (kind == kSerial) return true;
  if (kind == kLasting) return worker > 0 || unattended() || all_others_run();
  if (running_parallel_ == 0) return worker == 0 || unattended();
  return running_long_ == running_parallel_ && free_cores() > 0;
}

bool WorkerPool::all_others_run() const {
  return !workers_.empty() && static_cast<int>(workers_.size()) == max_workers_ &&
         std::all_of(std::next(workers_.begin()), workers_.end(),
                     [](const Worker& worker) { return worker.state == State::kRunning; });
}

// The kind whose first task comes next for this worker; kKinds if it has to wait.
WorkerPool::Kind WorkerPool::next_kind(int worker) const {
  int next = kKinds;
  for (int kind = 0; kind < kKinds; ++kind) {
    if (!may_take(worker, static_cast<Kind>(kind))) continue;
    if (next == kKinds || runs_after(ready_[next].front(), ready_[kind].front())) next = kind;
  }
  return static_cast<Kind>(next);
}

QueuedTask* WorkerPool::take_ready(int worker) {
  const Kind kind = next_kind(worker);
  if (kind == kKinds) return nullptr;
  Heap& heap = ready_[kind];
  std::pop_heap(heap.begin(), heap.end(), runs_after);
  QueuedTask* task = heap.back();
  heap.pop_back();
  if (kind == kParallel && is_long(task)) --ready_long_;
  if (kind == kSerial) ready_serial_ns_ -= expected_ns(task);
  ready_count_.fetch_sub(1, std::memory_order_release);
  return task;
}

bool WorkerPool::nothing_ready() const {
  return std::all_of(ready_.begin(), ready_.end(), [](const Heap& heap) { return heap.empty(); });
}

// While workers are being stopped: true if a task is left that was ready before.
bool WorkerPool::ready_before_stop(int worker) const {
  const Kind kind = next_kind(worker);
  return kind != kKinds && ready_[kind].front()->sequence < stop_sequence_;
}

// Ensures that for each kind of ready task a worker is awake that may take it. Called again when a task is taken.
void WorkerPool::call_workers() {
  if (stops_ > 0) return;
  for (int kind = 0; kind < kKinds; ++kind) call_worker_for(static_cast<Kind>(kind));
}

// True if a busy worker will have done the short tasks before waking another worker pays. Without a free core the other
// worker would share a core with a thread of a team, and the whole team would wait for that thread.
bool WorkerPool::is_soon_idle() const {
  const int64_t patience = free_cores() > 0 ? kPatienceNs : kBriefNs;
  return std::any_of(workers_.begin(), workers_.end(), [this, patience](const Worker& worker) {
    return worker.state == State::kRunning && worker.busy_ns + ready_serial_ns_ <= patience;
  });
}

// Wakes no worker if all that may run the task are busy: they take it when they are done.
void WorkerPool::call_worker_for(Kind kind) {
  if (ready_[kind].empty() || (kind == kSerial && is_soon_idle())) return;
  Worker* called = nullptr;
  for (Worker& worker : workers_) {
    if (worker.state == State::kRunning || !may_take(worker.index, kind)) continue;
    if (worker.state == State::kLooking) return;
    if (!called) called = &worker;
  }
  if (called) return wake(*called);
  int able = static_cast<int>(workers_.size());
  while (able < max_workers_ && !may_take(able, kind)) ++able;
  if (able >= max_workers_) return;
  while (static_cast<int>(workers_.size()) <= able) {
    if (!start_worker()) return call_worker_for(kind);  // the limits have changed: the existing workers may now take it
  }
}

void WorkerPool::wake(Worker& worker) {
  set_state(worker, State::kLooking);
  worker.woken.notify_one();
}

void WorkerPool::set_state(Worker& worker, State state) {
  looking_ += (state == State::kLooking ? 1 : 0) - (worker.state == State::kLooking ? 1 : 0);
  worker.state = state;
}

// False if the system gives no more threads: then the existing workers, or the threads that wait, run the tasks.
bool WorkerPool::start_worker() {
  const BlockedSignals blocked;  // inherited by the new thread
  Worker& worker = workers_.emplace_back();
  worker.index = static_cast<int>(workers_.size()) - 1;
  try {
    worker.thread = std::thread([this, &worker] { work(worker); });
  } catch (const std::system_error&) {
    workers_.pop_back();
    set_limits(stops_, static_cast<int>(workers_.size()));
    return false;
  }
  ++looking_;
  pthread_setname_np(worker.thread.native_handle(), "hybridnet-work");
  return true;
}

void WorkerPool::set_limits(int stops, int max_workers) {
  stops_ = stops;
  max_workers_ = max_workers;
  threadless_.store(max_workers == 0, std::memory_order_release);
  unattended_.store(stops > 0 || max_workers == 0, std::memory_order_release);
}

// The number of cores for a task that runs alone. A thread that pushes one operator after the other is always busy. It
// would share a core with a thread of the team, for which the rest of the team waits at the end of each region. Where
// there are more than two cores, one is left to it.
int WorkerPool::cores_for_team(const QueuedTask* task) const {
  const int cores = cpu_cores();
  const bool leaves_one =
      cores > 2 && uses_all_cores() && expected_ns(task) < kBriefNs && policy_.users_push && policy_.users_push();
  return leaves_one ? cores - 1 : cores;
}

// Runs one task that was taken; the lock is released meanwhile.
void WorkerPool::run_and_collect(Lock& lock, QueuedTask* task) {
  const bool is_parallel = kind_of(task) == kParallel;
  const bool shares = is_parallel && is_long(task);
  const uint64_t forks = forks_;
  ++running_;
  running_parallel_ += is_parallel;
  running_long_ += shares;
  std::vector<QueuedTask*> ready;
  {
    const int wanted = is_parallel ? cores_worth_having(task->options) : 1;
    const int most = is_parallel ? cores_for_team(task) : 1;
    // Long tasks that run beside this one, or are ready to, get their share of the cores. Two cores are not shared: a
    // core each gains nothing (20 calls of an LSTM: 14.4 ms a call, 14.0 one after the other), and the last of three
    // calls would have only one core (18.5 ms).
    const int teams = shares && most > 2 ? std::min(running_long_ + ready_long_, policy_.max_workers) : 1;
    const CoreLease lease(std::min(wanted, std::max(1, most / teams)));
    call_workers();
    lock.unlock();
    run_(task, lease.cores(), ready);
  }
  lock.lock();
  if (forks == forks_) {  // otherwise the task has forked and this is the child, whose counts start from 0
    --running_;
    running_parallel_ -= is_parallel;
    running_long_ -= shares;
  }
  add_ready(ready.data(), ready.size());
}

void WorkerPool::work(Worker& self) {
  Lock lock(mutex_);
  while (true) {
    if (stops_ > 0 && !ready_before_stop(self.index)) {
      return set_state(self, State::kRunning);  // other workers are awake for the tasks that are left
    }
    if (QueuedTask* task = take_ready(self.index)) {
      set_state(self, State::kRunning);
      self.busy_ns = expected_ns(task);
      run_and_collect(lock, task);
      set_state(self, State::kLooking);
      call_workers();
    } else {
      spin_for_work(lock);
      if (next_kind(self.index) == kKinds && stops_ == 0) sleep(lock, self);
    }
  }
}

// Tasks often come in quick succession: the first worker without a task stays awake for a short time.
void WorkerPool::spin_for_work(Lock& lock) {
  if (looking_ > 1 || !nothing_ready() || stops_ > 0) return;
  lock.unlock();
  spin_until([this] { return ready_count_.load(std::memory_order_acquire) > 0; }, kSpinForWork);
  lock.lock();
}

void WorkerPool::sleep(Lock& lock, Worker& self) {
  set_state(self, State::kAsleep);
  self.woken.wait(lock, [&self] { return self.state != State::kAsleep; });
}

bool WorkerPool::help() {
  if (ready_count_.load(std::memory_order_acquire) == 0) return false;
  Lock lock(mutex_);
  const Kind kind = next_kind(/*worker=*/0);
  if (kind == kKinds) return false;
  const int64_t cost = ready_[kind].front()->options.cost_ns;
  if (!unattended() && (running_ > 0 || cost <= 0 || cost > kHelpLimitNs)) return false;
  run_and_collect(lock, take_ready(/*worker=*/0));
  call_workers();
  return true;
}

void WorkerPool::join_workers() {
  std::list<Worker> stopped;
  {
    const Lock lock(mutex_);
    if (stops_ == 0) stop_sequence_ = next_sequence_;
    set_limits(stops_ + 1, max_workers_);
    stopped.swap(workers_);
    for (Worker& worker : stopped) {
      if (worker.state == State::kAsleep) wake(worker);
    }
  }
  for (Worker& worker : stopped) worker.thread.join();
}

void WorkerPool::resume(bool however_often_stopped) {
  const Lock lock(mutex_);
  set_limits(however_often_stopped ? 0 : std::max(0, stops_ - 1), policy_.max_workers);
  call_workers();
}

void WorkerPool::forget_after_fork() {
  new (&mutex_) std::mutex();  // another thread of the parent may have held it
  // Threads that could not be stopped, because a task forked, do not exist here. Their objects can be neither joined
  // nor destroyed, so they are leaked.
  if (!workers_.empty()) new std::list<Worker>(std::move(workers_));
  workers_.clear();
  for (Heap& heap : ready_) heap.clear();
  ready_count_.store(0, std::memory_order_release);
  ready_serial_ns_ = 0;
  looking_ = ready_long_ = running_ = running_parallel_ = running_long_ = 0;
  ++forks_;
  set_limits(0, policy_.max_workers);
}

}  // namespace hybridnet
