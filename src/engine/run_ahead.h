// Bounds how far threads that push work run ahead of the workers.
//
// A training loop that reads no result would queue all its steps, each with its input data (results take their memory
// only when they are computed). So a push charges the declared time of its task while the task is queued. While too
// much is charged, a push outside of tasks waits until half of it is done: the two thread switches of a wait are then
// paid once for many tasks. A charge ends when its task begins. Threads: every member is safe from any thread. A wait
// holds no lock that a task could need (see WaitHooks).
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>

namespace hybridnet {

class RunAhead {
 public:
  // Called by a front end around a wait of the thread that pushes.
  struct WaitHooks {
    void* (*begin)() = nullptr;          // releases locks that tasks may need, such as Python's GIL
    void (*end)(void* begun) = nullptr;  // takes them again
    bool (*wanted)() = nullptr;          // polled: true if the thread must continue, for Ctrl-C
  };

  explicit RunAhead(int64_t limit_ns) : limit_ns_(limit_ns) {}  // below 0: no limit
  RunAhead(const RunAhead&) = delete;

  // The charge of one queued task, until release() or the end of the object.
  class Charge {
   public:
    Charge() = default;
    Charge(Charge&& o) noexcept : owner_(std::exchange(o.owner_, nullptr)), cost_ns_(o.cost_ns_) {}
    Charge& operator=(Charge&&) = delete;
    ~Charge() { release(); }
    void release() {
      if (RunAhead* owner = std::exchange(owner_, nullptr)) owner->discharge(cost_ns_);
    }

   private:
    friend class RunAhead;
    Charge(RunAhead* owner, int64_t cost_ns) : owner_(owner), cost_ns_(cost_ns) {}
    RunAhead* owner_ = nullptr;
    int64_t cost_ns_ = 0;
  };

  // Waits if there is no room for one more task, then charges it. Never waits inside a task. Throws no errors of tasks:
  // these stay with the variables, and waits for results throw them.
  Charge charge(int64_t cost_ns);

  int64_t queued_ns() const { return cost_ns_.load(std::memory_order_relaxed); }
  // While it lives, the waiting thread has released the locks that tasks may need.
  class FrontEndPause {
   public:
    explicit FrontEndPause(const RunAhead& ahead)
        : hooks_(ahead.hooks_), begun_(hooks_.begin ? hooks_.begin() : nullptr) {}
    ~FrontEndPause() {
      if (hooks_.end) hooks_.end(begun_);
    }
    FrontEndPause(const FrontEndPause&) = delete;

   private:
    const WaitHooks& hooks_;
    void* begun_;
  };

  uint64_t waits() const { return waits_.load(std::memory_order_relaxed); }  // so far
  void set_hooks(const WaitHooks& hooks) { hooks_ = hooks; }                 // before the first push
  void stop_waiting() { limited_.store(false); }                             // final: no worker runs queued tasks
  bool waits_no_more() const { return !limited_.load(std::memory_order_relaxed); }
  void forget_after_fork();  // in the child of a fork, where no queued task exists

 private:
  bool has_room(int64_t limit_ns) const;
  void wait_for_room();
  void discharge(int64_t cost_ns);

  const int64_t limit_ns_;
  WaitHooks hooks_;
  std::atomic<bool> limited_{true};
  std::atomic<int64_t> cost_ns_{0};  // declared time of the queued tasks
  std::atomic<int64_t> tasks_{0};    // number of the queued tasks
  std::atomic<int> waiting_{0};      // number of waiting threads
  std::atomic<uint64_t> waits_{0};
  std::mutex mutex_;
  std::condition_variable room_;
};

RunAhead& run_ahead();  // the process', with the limit of the environment

}  // namespace hybridnet
