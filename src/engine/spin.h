// Busy waiting, which keeps the core, for events that are about to happen.
#pragma once

#include <atomic>
#include <chrono>

namespace hybridnet {

inline void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield" ::: "memory");
#endif
}

// Polls until ready() or until the time is over; returns whether ready() was true.
template <typename Ready>
bool spin_until(Ready ready, std::chrono::nanoseconds limit) {
  constexpr int kPollsPerLook = 32;  // polls between two reads of the clock
  const auto end = std::chrono::steady_clock::now() + limit;
  do {
    for (int i = 0; i < kPollsPerLook; ++i) {
      if (ready()) return true;
      pause_briefly();
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}

}  // namespace hybridnet
