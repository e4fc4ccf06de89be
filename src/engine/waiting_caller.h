// Detects whether the calling thread waits for the result of each call before the next call, as loops of predictions
// do. Such a thread may as well run the work itself: handing it to a worker costs two switches between threads, and on
// two cores the third thread disturbs the team that computes. The work of a thread that does something else meanwhile,
// or calls again before it waits, goes to workers.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace hybridnet {

// Threads: each has its own record.
class WaitingCaller {
 public:
  // Called when work of this duration was pushed, or run instead of being pushed.
  static void note_work(int64_t ns) {
    Record& r = record();
    if (r.unawaited) r.waits = 0;
    r.unawaited = true;
    r.patience = std::max(kPatience, std::chrono::nanoseconds(ns / kPartOfWork));
    r.since = Clock::now();
  }
  static void note_wait() {
    Record& r = record();
    if (!r.unawaited) return;
    r.unawaited = false;
    r.waits = Clock::now() - r.since <= r.patience ? std::min(r.waits + 1, kEnough) : 0;
  }
  // True if each of the last calls was followed by a wait.
  static bool is_likely() {
    const Record& r = record();
    return r.waits == kEnough && !r.unawaited;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr int kEnough = 3;
  // If the thread waits within this time, or within this part of the work's duration, a worker does not pay.
  static constexpr std::chrono::nanoseconds kPatience = std::chrono::microseconds(50);
  static constexpr int64_t kPartOfWork = 20;

  struct Record {
    int waits = 0;  // calls in a row that were followed by a wait
    bool unawaited = false;
    std::chrono::nanoseconds patience{0};
    Clock::time_point since;
  };
  static Record& record() {
    thread_local Record of_thread;
    return of_thread;
  }
};

}  // namespace hybridnet
