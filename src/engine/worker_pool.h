// The threads of one device and the tasks that are ready for them, highest priority first, then in push order.
//
// A default CPU pool has one worker that computes with all cores and starts more only for tasks that can run beside it.
// An OpenMP team belongs to the thread that opened it and spins between its regions, so two teams on the same cores
// slow each other down, by half where tasks are short. Therefore what is worth several cores is for the first worker,
// and waits while that computes. Only long tasks share the cores with other long ones, down to one core each and no
// team: four calls side by side on a core each beat four calls one after the other on four. Tasks of unknown cost may
// last for any time, and so may those that can use one core only, such as loops of small operators: they are for the
// other workers while there are any.
//
// While a pool is unattended, because its workers were stopped or the system gives no threads at all, whoever waits
// runs what is ready, whatever it costs: nothing waits for a worker that does not come.
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
  // Runs a task with this many cores, ends its accesses, deletes it and appends the tasks of this pool that became
  // ready.
  using Run = std::function<void(QueuedTask* task, int cores, std::vector<QueuedTask*>& ready)>;
  struct Policy {
    int max_workers = 1;
    bool shares_cores = false;         // tasks lease cores, and parallel ones start only when some are free
    std::function<bool()> users_push;  // does a thread that pushes work need a core now?
  };

  WorkerPool(Policy policy, Run run);
  ~WorkerPool();  // runs what is ready, then joins

  void submit(QueuedTask* const* tasks, size_t count);
  // Runs one ready task on the calling, waiting thread if its workers have not begun with any: they sleep, and to wake
  // one takes longer than a short task. Only tasks of known, bounded cost, so that the wait does not outlast what it is
  // for; any task of a pool that is unattended.
  bool help();
  bool unattended() const { return unattended_.load(std::memory_order_acquire); }
  bool has_no_threads() const { return threadless_.load(std::memory_order_acquire); }  // the system gives none

  // After the tasks that are ready now are done; those that become ready later stay until resume() was called as often
  // (two threads may fork at once), or until waits run them. So it ends however much other threads push meanwhile.
  void join_workers();
  void resume(bool however_often_stopped = false);
  void forget_after_fork();  // in the child of a fork: what other threads held or had pushed does not exist here

 private:
  enum class State { kLooking, kRunning, kAsleep };
  struct Worker {
    int index = 0;
    State state = State::kLooking;
    int64_t busy_ns = 0;  // how long the task that runs is expected to take
    std::condition_variable woken;
    std::thread thread;
  };
  // Ready tasks by who may run them; each kind is a heap.
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
  bool soon_done() const;
  int cores_for_team(const QueuedTask* task) const;
  void wake(Worker& worker);
  bool start_worker();
  void set_limits(int stops, int most_workers);
  void set_state(Worker& worker, State state);
  void sleep(Lock& lock, Worker& self);
  void spin_for_work(Lock& lock);

  const Policy policy_;
  const Run run_;
  std::mutex mutex_;
  std::array<Heap, kKinds> ready_;
  std::atomic<size_t> ready_count_{0};
  int ready_long_ = 0;           // of the parallel ones
  int64_t ready_serial_ns_ = 0;  // how long the serial ones are expected to take, one after the other
  uint64_t next_sequence_ = 0;
  std::list<Worker> workers_;
  int looking_ = 0;             // workers awake without a task: they take what is ready
  int running_ = 0;             // tasks running, also on helping threads
  int running_parallel_ = 0;    // of these, the ones worth several cores
  int running_long_ = 0;        // of these, the long ones
  int most_workers_;            // that may be had: fewer than asked for where the system gives no more threads
  int stops_ = 0;               // calls of join_workers() without resume() so far
  uint64_t stop_sequence_ = 0;  // tasks from here on became ready while workers were stopped
  uint64_t forks_ = 0;          // that this pool has lived through as the child
  std::atomic<bool> unattended_{false}, threadless_{false};  // follow stops_ and most_workers_
};

}  // namespace hybridnet
