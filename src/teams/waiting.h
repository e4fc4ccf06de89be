// Waiting for another thread: by spinning while the wait is likely to end soon, then asleep.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace hybridnet::teams {

inline int64_t now_ns() { return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1); }

inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

// Sleeps while `word` holds `value`; may return early.
void sleep_on(std::atomic<uint32_t>& word, uint32_t value);
void wake_all(std::atomic<uint32_t>& word);

// Detects that threads of this process shared a core with busy foreign threads a moment ago: a member of a team waited
// milliseconds for its turn. A thread that spins then uses up the time that the system would give it for later work.
class Crowding {
 public:
  bool now(int64_t time_ns) const { return time_ns < until_.load(std::memory_order_relaxed); }
  void saw_stall(int64_t time_ns);

 private:
  std::atomic<int64_t> until_{0}, pause_{0};
};

extern Crowding crowding;

// The time that one thread spins before it sleeps. Waking a thread takes 50 us and more if its core has gone to sleep.
// A thread that spins for less than that, and waits for a thread that has just been woken, is asleep when that thread
// is done, so that the two wake each other all the time. Several long waits in a row shorten the spinning.
class SpinLimit {
 public:
  // Polls done() until it is true. Returns false when the time is up. Calls now_and_then() about every microsecond.
  template <typename Done, typename F>
  bool spin(const Done& done, const F& now_and_then) {
    constexpr int kRounds = 32;  // between two reads of the clock: about a microsecond
    const int64_t begin = now_ns();
    const int64_t limit = crowding.now(begin) ? kLeastNs : limit_;
    for (;;) {
      for (int round = 0; round < kRounds; ++round) {
        if (done()) return true;
        relax();
      }
      const int64_t passed = now_ns() - begin;
      if (passed > limit) return false;
      now_and_then(passed);
    }
  }
  void slept(int64_t whole_wait_ns);

 private:
  static constexpr int64_t kLeastNs = 10'000, kMostNs = 200'000;
  static constexpr int kPatience = 8;  // number of long waits in a row
  int64_t limit_ = kMostNs / 2;
  int long_waits_ = 0;
};

}  // namespace hybridnet::teams
