#include "base/interrupt.h"

namespace hybridnet {
namespace {

constexpr auto kGrace = std::chrono::seconds(1);

}  // namespace

void note_interrupt() { detail::interrupts.fetch_add(1, std::memory_order_relaxed); }

void note_exit() {
  detail::exits.store(1, std::memory_order_relaxed);
  note_interrupt();
}

bool InterruptWatch::is_late() {
  const auto now = std::chrono::steady_clock::now();
  if (!noticed_) noticed_ = now;
  return now - *noticed_ >= kGrace;
}

}  // namespace hybridnet
