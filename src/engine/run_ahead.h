// How far threads that push work may run ahead of the workers that do it.
//
// A training loop that reads no result would queue all its steps, each with the memory of its results and of what its
// gradient needs. So whoever pushes a task charges what the task holds while it is queued, and waits, outside of tasks
// only, while too much is charged. A charge ends when its task begins: the tasks that run, and the ones that make the
// next wait short, do not count.
// Threads: every member is safe from any thread. A wait holds no lock that a task could need (see WaitHooks).
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>

namespace hybridnet {

class RunAhead {
 public:
  struct Limits {
    int64_t bytes = -1;    // held by queued tasks; below 0: no limit
    int64_t cost_ns = -1;  // declared cost of queued tasks worth a wait; below 0: no limit
  };
  // What a front end does around a wait on the thread that pushes.
  struct WaitHooks {
    void* (*begin)() = nullptr;          // lets go of what tasks may need, such as Python's GIL
    void (*end)(void* begun) = nullptr;  // takes it again
    bool (*wanted)() = nullptr;          // asked now and then: somebody (Ctrl-C) wants the thread, so that it goes on
  };

  explicit RunAhead(Limits limits) : limits_(limits) {}
  RunAhead(const RunAhead&) = delete;

  // What one queued task counts for, until release() or the end of the object.
  class Charge {
   public:
    Charge() = default;
    Charge(Charge&& o) noexcept : owner_(std::exchange(o.owner_, nullptr)), bytes_(o.bytes_), cost_ns_(o.cost_ns_) {}
    Charge& operator=(Charge&&) = delete;
    ~Charge() { release(); }
    void release() {
      if (RunAhead* owner = std::exchange(owner_, nullptr)) owner->discharge(bytes_, cost_ns_);
    }

   private:
    friend class RunAhead;
    Charge(RunAhead* owner, int64_t bytes, int64_t cost_ns) : owner_(owner), bytes_(bytes), cost_ns_(cost_ns) {}
    RunAhead* owner_ = nullptr;
    int64_t bytes_ = 0, cost_ns_ = 0;
  };

  // Waits until there is room for one more task of this declared cost, then charges it. bytes: what it alone keeps from
  // being freed. Never waits inside a task, nor for what has an error: errors stay where waits for results find them.
  Charge charge(int64_t bytes, int64_t cost_ns);

  int64_t queued_bytes() const { return bytes_.load(std::memory_order_relaxed); }
  uint64_t waits() const { return waits_.load(std::memory_order_relaxed); }  // so far
  void set_hooks(const WaitHooks& hooks) { hooks_ = hooks; }                 // before the first push
  void stop_waiting() { limited_.store(false); }  // for good: no worker will run what is queued
  void forget_after_fork();                       // in the child of a fork, where no queued task exists

 private:
  bool has_room(int64_t cost_ns) const;
  void wait_for_room(int64_t cost_ns);
  void discharge(int64_t bytes, int64_t cost_ns);

  const Limits limits_;
  WaitHooks hooks_;
  std::atomic<bool> limited_{true};
  std::atomic<int64_t> bytes_{0};
  std::atomic<int64_t> cost_ns_{0};  // of the costly tasks only
  std::atomic<int64_t> costly_{0};   // how many these are
  std::atomic<int> waiting_{0};      // threads
  std::atomic<uint64_t> waits_{0};
  std::mutex mutex_;
  std::condition_variable room_;
};

RunAhead& run_ahead();  // the process', with the limits of the environment

}  // namespace hybridnet
