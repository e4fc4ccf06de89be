#include "base/front_end.h"

#include <atomic>
#include <chrono>
#include <cstdio>

namespace hybridnet {
namespace {

std::atomic<decltype(FrontEnd::warn)> give_warning{nullptr};
std::atomic<decltype(FrontEnd::check_interrupt)> ask_for_interrupt{nullptr};

}  // namespace

void set_front_end(const FrontEnd& front_end) {
  give_warning.store(front_end.warn, std::memory_order_release);
  ask_for_interrupt.store(front_end.check_interrupt, std::memory_order_release);
}

void set_warning_function(decltype(FrontEnd::warn) function) {
  give_warning.store(function, std::memory_order_release);
}

void warn(const std::string& text, SourceLocation where, WarningKind kind) {
  if (const auto give = give_warning.load(std::memory_order_acquire)) return give(text, where, kind);
  const std::string line = where.known() ? where.str() + ": " : std::string();
  std::fprintf(stderr, "hybridnet: %s%s\n", line.c_str(), text.c_str());
}

void check_interrupt() {
  using Clock = std::chrono::steady_clock;
  thread_local Clock::time_point last = Clock::now();
  const Clock::time_point now = Clock::now();
  if (now - last < std::chrono::milliseconds(50)) return;
  last = now;
  if (const auto ask = ask_for_interrupt.load(std::memory_order_acquire)) ask();
}

}  // namespace hybridnet
