#include "teams/waiting.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

namespace hybridnet::teams {

Crowding crowding;

void sleep_on(std::atomic<uint32_t>& word, uint32_t value) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}

void wake_all(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void Crowding::saw_stall(int64_t time_ns) {
  constexpr int64_t kLeastPauseNs = 20'000'000, kMostPauseNs = 2'000'000'000, kSoonAgain = 4;
  const int64_t pause = pause_.load(std::memory_order_relaxed);
  const bool again = time_ns - until_.load(std::memory_order_relaxed) < kSoonAgain * pause;
  const int64_t next = again ? std::min(2 * pause, kMostPauseNs) : kLeastPauseNs;
  pause_.store(next, std::memory_order_relaxed);
  until_.store(time_ns + next, std::memory_order_relaxed);
}

void SpinLimit::slept(int64_t whole_wait_ns) {
  if (whole_wait_ns < 2 * kMostNs) {  // a little more spinning would have been enough
    limit_ = kMostNs;
    long_waits_ = 0;
  } else if (++long_waits_ >= kPatience) {
    limit_ = std::max(limit_ / 2, kLeastNs);
    long_waits_ = 0;
  }
}

}  // namespace hybridnet::teams
