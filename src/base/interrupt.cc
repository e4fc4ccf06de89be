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

thread_local std::optional<uint64_t> InterruptScope::asked_at_;

InterruptWatch::InterruptWatch() : known_(InterruptScope::asked_at_.value_or(interrupts_so_far())) {}

bool InterruptWatch::is_late() {
  const auto now = std::chrono::steady_clock::now();
  if (!noticed_) noticed_ = now;
  return now - *noticed_ >= kGrace;
}

}  // namespace hybridnet
