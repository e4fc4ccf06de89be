// Ctrl-C ends a wait at once. Running work continues, so that no training step stays half done. A loop that still runs
// a second later may never end: it stops with an error, which waits for its results rethrow. The end of the process
// stops loops in the same way, because no reader of their results is left.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

namespace hybridnet {

// The user has stopped a wait.
void note_interrupt();
// The process ends. From now on no loop runs for longer than a second.
void note_exit();

namespace detail {
inline std::atomic<uint64_t> interrupts{0};
inline std::atomic<uint64_t> exits{0};
}  // namespace detail

// The number of interrupts so far. The end of the process also counts for loops that begin after it.
inline uint64_t interrupts_so_far() {
  return detail::interrupts.load(std::memory_order_relaxed) - detail::exits.load(std::memory_order_relaxed);
}

// While it lives, the thread does work that was requested after this number of interrupts.
class InterruptScope {
 public:
  explicit InterruptScope(uint64_t interrupts_before) : before_(std::exchange(asked_at_, interrupts_before)) {}
  ~InterruptScope() { asked_at_ = before_; }
  InterruptScope(const InterruptScope&) = delete;

 private:
  friend class InterruptWatch;
  static thread_local std::optional<uint64_t> asked_at_;
  const std::optional<uint64_t> before_;
};

// Polled by a loop between its iterations. Made on the thread of the scope; each thread of a team gets a copy.
class InterruptWatch {
 public:
  InterruptWatch();
  // True once the loop has gone on for too long after an interrupt.
  bool must_stop() { return detail::interrupts.load(std::memory_order_relaxed) != known_ && is_late(); }

 private:
  bool is_late();

  uint64_t known_;
  std::optional<std::chrono::steady_clock::time_point> noticed_;
};

}  // namespace hybridnet
