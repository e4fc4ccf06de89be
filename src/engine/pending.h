// Counts the tasks that were pushed and have not ended, so that a wait for all of them ends while other threads push.
//
// Each task belongs to one of two generations. A new task joins the younger generation. A wait closes the younger
// generation once the older one is empty; the empty one becomes the younger. The wait then sleeps until the closed
// generation is empty. A task pushed by a task joins the generation of its parent, so a closed generation grows only by
// tasks that its own tasks push. Two generations are enough: a wait that begins during an older wait closes the next
// generation only after the older wait has ended.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>

namespace hybridnet {

class Pending {
 public:
  static constexpr int kYoungest = -1;

  // --- without a lock
  bool nothing() const { return counts_[0].load() == 0 && counts_[1].load() == 0; }
  int64_t count() const { return counts_[0].load() + counts_[1].load(); }
  // A task has ended. True: its generation is empty and a thread waits, so the caller must call announce_empty().
  bool remove(int generation) {
    return counts_[static_cast<size_t>(generation)].fetch_sub(1) == 1 && waiting_.load() > 0;
  }

  // --- under the engine's mutex
  // Counts one more task; returns its generation.
  int add(int generation) {
    if (generation == kYoungest) generation = young_;
    counts_[static_cast<size_t>(generation)].fetch_add(1);
    return generation;
  }
  void announce_empty(int generation) {
    const auto g = static_cast<size_t>(generation);
    if (counts_[g].load() > 0) return;  // the younger generation, to which tasks were added meanwhile
    ++emptied_[g];
    changed_.notify_all();
  }

  // A wait for the tasks that are pending when it begins. Made, used and destroyed under the engine's mutex.
  class Wait {
   public:
    explicit Wait(Pending& pending) : pending_(pending), old_(1 - pending.young_), emptied_before_(pending.emptied_) {
      pending_.waiting_.fetch_add(
          1);  // before over() reads the counts: remove() changes a count first, then reads waiting_
    }
    ~Wait() { pending_.waiting_.fetch_sub(1); }
    Wait(const Wait&) = delete;

    bool over() {
      if (!empty(old_)) return false;
      const int young = 1 - old_;
      if (empty(young)) return true;
      if (pending_.young_ == young) pending_.close_young();
      return false;
    }
    void sleep(std::unique_lock<std::mutex>& lock) {
      pending_.changed_.wait(lock, [this] { return over(); });
    }
    void sleep_for(std::unique_lock<std::mutex>& lock, std::chrono::nanoseconds limit) {
      pending_.changed_.wait_for(lock, limit, [this] { return over(); });
    }

   private:
    // The generation is empty now, or was at some time since the wait began.
    bool empty(int generation) const {
      const auto g = static_cast<size_t>(generation);
      return pending_.emptied_[g] != emptied_before_[g] || pending_.counts_[g].load() == 0;
    }

    Pending& pending_;
    const int old_;
    const std::array<uint64_t, 2> emptied_before_;
  };

 private:
  // Called only while the older generation is empty. Records that once more: a wait that has not seen it must not wait
  // for the tasks that join this generation from now on.
  void close_young() {
    young_ = 1 - young_;
    ++emptied_[static_cast<size_t>(young_)];
    changed_.notify_all();
  }

  std::array<std::atomic<int64_t>, 2> counts_{};
  std::atomic<int> waiting_{0};  // number of waiting threads
  int young_ = 0;
  std::array<uint64_t, 2> emptied_{};  // how often each generation was found empty
  std::condition_variable changed_;
};

// While it lives, tasks that this thread pushes into the engine join the generation of the task that the thread runs.
class RunningTask {
 public:
  RunningTask(const void* engine, int generation) : before_(std::exchange(current, Task{engine, generation})) {}
  ~RunningTask() { current = before_; }
  RunningTask(const RunningTask&) = delete;

  static bool is_of(const void* engine) { return current.engine == engine; }
  static int generation(const void* engine) { return is_of(engine) ? current.generation : Pending::kYoungest; }
  static void set_generation(int generation) { current.generation = generation; }  // in the child of a fork

 private:
  struct Task {
    const void* engine;
    int generation;
  };
  static inline thread_local Task current{nullptr, Pending::kYoungest};
  Task before_;
};

}  // namespace hybridnet
