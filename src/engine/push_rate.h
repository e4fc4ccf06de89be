// Tells whether callers push many tasks without waiting: the last push was less than 200 us ago and at least 8 tasks
// are pending. A caller that waits for the result of each operator has one task pending.
#pragma once

#include <chrono>
#include <cstdint>

namespace hybridnet {

class PushRate {
 public:
  // pushed: number of tasks pushed so far. Called when a task begins, by one thread at a time.
  bool are_busy(uint64_t pushed, int64_t pending) {
    const auto now = std::chrono::steady_clock::now();
    if (pushed != pushed_before_) last_push_ = now;
    pushed_before_ = pushed;
    return pending >= kManyPending && now - last_push_ < kMoment;
  }

 private:
  static constexpr int64_t kManyPending = 8;
  static constexpr auto kMoment = std::chrono::microseconds(200);

  uint64_t pushed_before_ = 0;
  std::chrono::steady_clock::time_point last_push_;
};

}  // namespace hybridnet
