// The time that runs of a plan take: estimated from its operators, then measured.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace hybridnet {

// Estimates hold for an average machine: a transformer's was three times its real time, a small dense layer's four
// times. Whether a call is worth a hand-over to a worker, which costs as much as a small call, is therefore decided by
// the runs so far. Any number of threads may add and read.
class MeasuredTime {
 public:
  // Returns the measured time, or the guess before the first run. Stays within a factor of the guess: a loop that ended
  // at once so far need not do so the next time.
  int64_t or_guess(int64_t guessed_ns) const {
    const int64_t measured = ns_.load(std::memory_order_relaxed);
    if (measured == 0) return guessed_ns;
    const int64_t most = guessed_ns < INT64_MAX / kMaxError ? guessed_ns * kMaxError : INT64_MAX;
    return std::clamp(measured, guessed_ns / kMaxError, most);
  }

  // A shorter time replaces the old one, a longer one counts in part: that run may have waited for a core, or packed
  // weights.
  void add(int64_t ns) {
    const int64_t before = ns_.load(std::memory_order_relaxed);
    const int64_t after = before == 0 || ns < before ? ns : before + (ns - before) / kPartOfLonger;
    ns_.store(std::max<int64_t>(after, 1), std::memory_order_relaxed);
  }

  // Adds the time of its lifetime. Short runs are not measured: they cost less than any hand-over.
  class Scope {
   public:
    Scope(MeasuredTime& time, int64_t guessed_ns) : time_(guessed_ns < kShortNs ? nullptr : &time) {
      if (time_) begin_ = std::chrono::steady_clock::now();
    }
    ~Scope() {
      if (time_) time_->add((std::chrono::steady_clock::now() - begin_) / std::chrono::nanoseconds(1));
    }
    Scope(const Scope&) = delete;

   private:
    static constexpr int64_t kShortNs = 10'000;
    MeasuredTime* const time_;
    std::chrono::steady_clock::time_point begin_;
  };

 private:
  static constexpr int64_t kMaxError = 8;
  static constexpr int64_t kPartOfLonger = 8;

  std::atomic<int64_t> ns_{0};
};

}  // namespace hybridnet
