// How far threads that push work may run ahead of the workers that do it.
//
// A training loop that reads no result would queue all its steps, each with the data it works on (results take their
// memory only when they are computed). So whoever pushes a task charges its declared time while it is queued, and
// waits, outside of tasks only, while too much is charged, until half of that is done: a wait costs two switches
// between threads, which so are paid once for many tasks. A charge ends when its task begins. Threads: every member is
// safe from any thread. A wait holds no lock that a task could need (see WaitHooks).
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>

namespace hybridnet {

class RunAhead {
 public:
  // What a front end does around a wait on the thread that pushes.
  struct WaitHooks {
    void* (*begin)() = nullptr;          // lets go of what tasks may need, such as Python's GIL
    void (*end)(void* begun) = nullptr;  // takes it again
    bool (*wanted)() = nullptr;          // asked now and then: somebody (Ctrl-C) wants the thread, so that it goes on
  };

  explicit RunAhead(int64_t limit_ns) : limit_ns_(limit_ns) {}  // below 0: no limit
  RunAhead(const RunAhead&) = delete;

  // What one queued task counts for, until release() or the end of the object.
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

  // Waits if there is no room for one more task, then charges it. Never waits inside a task, nor for what has an error:
  // errors stay where waits for results find them.
  Charge charge(int64_t cost_ns);

  int64_t queued_ns() const { return cost_ns_.load(std::memory_order_relaxed); }
  // While it lives, a thread that waits for tasks has let go of what they may need.
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
  void stop_waiting() { limited_.store(false); }  // for good: no worker will run what is queued
  bool waits_no_more() const { return !limited_.load(std::memory_order_relaxed); }
  void forget_after_fork();  // in the child of a fork, where no queued task exists

 private:
  bool has_room(int64_t limit_ns) const;
  void wait_for_room();
  void discharge(int64_t cost_ns);

  const int64_t limit_ns_;
  WaitHooks hooks_;
  std::atomic<bool> limited_{true};
  std::atomic<int64_t> cost_ns_{0};  // of the queued tasks
  std::atomic<int64_t> tasks_{0};    // how many these are
  std::atomic<int> waiting_{0};      // threads
  std::atomic<uint64_t> waits_{0};
  std::mutex mutex_;
  std::condition_variable room_;
};

RunAhead& run_ahead();  // the process', with the limit of the environment

}  // namespace hybridnet
