// Ctrl-C ends a wait at once. What is being computed goes on, so that no training step is left half done; but a loop
// that still runs a second later may never end, so it stops, and what waits for its results gets an error. So do loops
// that run when the process ends: nobody is left to read their results.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

namespace hybridnet {

// The user has stopped a wait.
void note_interrupt();
// The process ends. From now on no loop runs for longer than a second.
void note_exit();

namespace detail {
inline std::atomic<uint64_t> interrupts{0};
inline std::atomic<uint64_t> exits{0};
}  // namespace detail

// What a loop asks between its iterations.
class InterruptWatch {
 public:
  // True once the loop has gone on for too long after an interrupt.
  bool must_stop() { return detail::interrupts.load(std::memory_order_relaxed) != known_ && is_late(); }

 private:
  bool is_late();

  uint64_t known_ = detail::interrupts.load(std::memory_order_relaxed) - detail::exits.load(std::memory_order_relaxed);
  std::optional<std::chrono::steady_clock::time_point> noticed_;
};

}  // namespace hybridnet
