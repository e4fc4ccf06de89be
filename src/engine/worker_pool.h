// The threads of one device and the tasks that are ready for them, highest priority first, then in push order.
//
// A default CPU pool has one worker that computes with all cores and starts more only for tasks that can run beside it:
// a task that is worth several cores waits while others hold them all, a cheap one does not. The worker that was idle
// for the shortest time is woken first, so that usually the same one, with the OpenMP team it owns, does the work.
#pragma once

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
  // Runs a task with this many cores, ends its accesses, deletes it and appends the tasks of this pool that became
  // ready.
  using Run = std::function<void(QueuedTask* task, int cores, std::vector<QueuedTask*>& ready)>;
  struct Policy {
    int max_workers = 1;
    bool shares_cores = false;  // tasks lease cores, and costly ones start only when some are free
  };

  WorkerPool(Policy policy, Run run);
  ~WorkerPool();  // runs what is ready, then joins

  void submit(QueuedTask* const* tasks, size_t count);
  // Runs one ready task on the calling, waiting thread if its workers have not begun with any: they sleep, and to wake
  // one takes longer than a short task. Only tasks of known, bounded cost, so that the wait does not outlast what it is
  // for.
  bool help();

  // After the ready tasks are done. submit() keeps tasks until resume() was called as often: two threads may fork at
  // once.
  void join_workers();
  void resume(bool however_often_stopped = false);
  void forget_after_fork();  // in the child of a fork: what other threads held or had pushed does not exist here

 private:
  struct Worker {
    std::condition_variable woken;
    bool called = false;
    std::thread thread;
  };
  using Lock = std::unique_lock<std::mutex>;

  void work(Worker& self);
  void run_and_collect(Lock& lock, QueuedTask* task);
  void add_ready(QueuedTask* const* tasks, size_t count);
  QueuedTask* take_ready();
  bool may_start_next() const;
  void call_workers();
  bool start_worker();
  void sleep(Lock& lock, Worker& self);
  void spin_for_work(Lock& lock);

  const Policy policy_;
  const Run run_;
  std::mutex mutex_;
  std::vector<QueuedTask*> ready_;  // a heap
  std::atomic<size_t> ready_count_{0};
  uint64_t next_sequence_ = 0;
  std::list<Worker> workers_;
  std::vector<Worker*> idle_;  // asleep, last one in is the first one called
  int looking_ = 0;            // workers awake without a task: they take what is ready
  int running_ = 0;            // tasks running, also on helping threads
  int running_costly_ = 0;     // of these, the ones worth more than one core
  int stops_ = 0;              // calls of join_workers() without resume() so far
};

}  // namespace hybridnet
