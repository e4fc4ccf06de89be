// Ctrl-C ends a wait at once. What is being computed goes on, so that no training step is left half done; but a loop
// that still runs a second later may never end, so it stops, and what waits for its results gets an error. So do loops
// that run when the process ends: nobody is left to read their results.
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

// How often that has happened; the end of the process counts for what begins after it, too.
inline uint64_t interrupts_so_far() {
  return detail::interrupts.load(std::memory_order_relaxed) - detail::exits.load(std::memory_order_relaxed);
}

// While it lives the thread does work that was asked for when there had been so many interrupts.
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

// What a loop asks between its iterations. Made on the thread of the scope; teams get copies.
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
