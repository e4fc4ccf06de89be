// The threads of one device and the tasks that are ready for them, highest priority first, then in push order.
//
// The CPU pool has a first worker that computes with all cores. It starts others only for tasks that can run beside it.
// An OpenMP team belongs to the thread that opened it and spins between its regions, so two teams on the same cores
// slow each other down, short tasks to half their speed. Therefore tasks worth several cores go to the first worker and
// wait while it computes. Only long tasks share the cores with other long tasks, down to one core each without a team:
// four calls side by side on one core each are faster than four calls one after the other on four cores. A pool
// with only two cores does not share them. Tasks of unknown cost, and long tasks for one core, such as loops of small
// operators, go to the other workers, if any.
//
// A pool is unattended while its workers are stopped or the system gives no threads. Then the threads that wait run all
// ready tasks, whatever these cost, so that no wait depends on a worker that does not exist.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/task.h"

namespace hybridnet {

class WorkerPool {
 public:
  // Runs a task with this number of cores, ends its accesses and deletes it. Appends the tasks of this pool that
  // became ready.
  using Run = std::function<void(QueuedTask* task, int cores, std::vector<QueuedTask*>& ready)>;
  struct Policy {
    int max_workers = 1;
    bool shares_cores = false;         // tasks lease cores, and parallel ones start only when some are free
    std::function<bool()> users_push;  // returns true if a thread that pushes work needs a core now
  };

  WorkerPool(Policy policy, Run run);
  ~WorkerPool();  // runs the ready tasks, then joins

  void submit(QueuedTask* const* tasks, size_t count);
  // Runs one ready task on the calling, waiting thread if no worker runs a task: waking a worker takes longer than a
  // short task. Only tasks of known and small cost, so that the wait is not prolonged; any task of an unattended pool.
  bool help();
  bool unattended() const { return unattended_.load(std::memory_order_acquire); }
  bool has_no_threads() const { return threadless_.load(std::memory_order_acquire); }  // the system gives none

  // Ends the workers after the tasks that are ready now. Tasks that become ready later stay queued until resume()
  // has been called once for each call of this (two threads may fork at once), or until a waiting thread runs them. So
  // pushes of other threads cannot delay it.
  void join_workers();
  void resume(bool however_often_stopped = false);
  void forget_after_fork();  // in the child of a fork, where the other threads and their tasks do not exist

 private:
  enum class State { kLooking, kRunning, kAsleep };
  struct Worker {
    int index = 0;
    State state = State::kLooking;
    int64_t busy_ns = 0;  // expected duration of the running task
    std::condition_variable woken;
    std::thread thread;
  };
  // Kinds of ready tasks by the workers that may run them; each kind has a heap.
  enum Kind { kSerial, kParallel, kLasting, kKinds };
  using Lock = std::unique_lock<std::mutex>;
  using Heap = std::vector<QueuedTask*>;

  void work(Worker& self);
  void run_and_collect(Lock& lock, QueuedTask* task);
  Kind kind_of(const QueuedTask* task) const;
  void add_ready(QueuedTask* const* tasks, size_t count);
  bool may_take(int worker, Kind kind) const;
  bool all_others_run() const;
  Kind next_kind(int worker) const;
  QueuedTask* take_ready(int worker);
  bool nothing_ready() const;
  bool ready_before_stop(int worker) const;
  void call_workers();
  void call_worker_for(Kind kind);
  bool is_soon_idle() const;
  int cores_for_team(const QueuedTask* task) const;
  void wake(Worker& worker);
  bool start_worker();
  void set_limits(int stops, int max_workers);
  void set_state(Worker& worker, State state);
  void sleep(Lock& lock, Worker& self);
  void spin_for_work(Lock& lock);

  const Policy policy_;
  const Run run_;
  std::mutex mutex_;
  std::array<Heap, kKinds> ready_;
  std::atomic<size_t> ready_count_{0};
  int ready_long_ = 0;           // number of ready parallel tasks that are long
  int64_t ready_serial_ns_ = 0;  // expected duration of the ready serial tasks together
  uint64_t next_sequence_ = 0;
  std::list<Worker> workers_;
  int looking_ = 0;             // workers that are awake without a task
  int running_ = 0;             // running tasks, those on helping threads included
  int running_parallel_ = 0;    // those of them that are worth several cores
  int running_long_ = 0;        // those of the parallel ones that are long
  int max_workers_;             // fewer than Policy::max_workers if the system gives no more threads
  int stops_ = 0;               // calls of join_workers() without resume() so far
  uint64_t stop_sequence_ = 0;  // tasks from this number on became ready while workers were stopped
  uint64_t forks_ = 0;          // forks in whose child this pool has continued
  std::atomic<bool> unattended_{false}, threadless_{false};  // follow stops_ and max_workers_
};

}  // namespace hybridnet
