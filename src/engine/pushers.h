// Are the threads that push work busy with that now? They are when the last push is a moment ago and several tasks are
// pending: a thread that waits for the result of each operator has only one.
#pragma once

#include <chrono>
#include <cstdint>

namespace hybridnet {

class Pushers {
 public:
  // pushed: tasks so far. Asked when tasks begin, by one thread at a time.
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
