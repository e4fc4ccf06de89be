// Tells whether the calling thread waits for what it has asked for before it asks for more, as loops of predictions do.
// Such a thread may as well run the work itself: handing it to a worker costs two switches between threads, and on two
// cores the third thread disturbs the team that computes. A thread that does something else meanwhile, or asks for
// more, keeps its workers.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace hybridnet {

// Threads: each has its own record.
class WaitingCaller {
 public:
  // Work that takes so long was pushed, or run in place of that.
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
  // Each of the last calls was followed by a wait.
  static bool is_likely() {
    const Record& r = record();
    return r.waits == kEnough && !r.unawaited;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr int kEnough = 3;
  // What the thread does in less time than this, or than this part of the work, is not worth a worker.
  static constexpr std::chrono::nanoseconds kPatience = std::chrono::microseconds(50);
  static constexpr int64_t kPartOfWork = 20;

  struct Record {
    int waits = 0;  // in a row
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
