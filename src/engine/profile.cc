#include "engine/profile.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <utility>

namespace hybridnet::profile {
namespace {

constexpr size_t kMaxEvents = size_t{1} << 22;  // 200 MB; a profile that is never taken must not eat the memory

// Never destroyed: workers may end a scope while the process ends.
struct Recording {
  std::mutex mutex;
  std::vector<Event> events;
};
Recording& recording() {
  static auto& r = *new Recording;
  return r;
}

int thread_number() {
  thread_local const int number = static_cast<int>(syscall(SYS_gettid));
  return number;
}

}  // namespace

int64_t now_ns() {
  using Clock = std::chrono::steady_clock;
  static const Clock::time_point origin = Clock::now();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - origin).count();
}

void start() {
  now_ns();  // sets the origin
  detail::active.store(true, std::memory_order_relaxed);
}

void stop() { detail::active.store(false, std::memory_order_relaxed); }

std::vector<Event> take() {
  const std::lock_guard lock(recording().mutex);
  return std::exchange(recording().events, {});
}

void detail::add(const char* name, const char* category, const char* node, const char* block, int64_t begin_ns,
                 std::string inputs) {
  const int64_t end_ns = now_ns();
  const int thread = thread_number();
  const std::lock_guard lock(recording().mutex);
  if (recording().events.size() < kMaxEvents)
    recording().events.push_back({name, category, node, block, begin_ns, end_ns, thread, std::move(inputs)});
}

void Scope::add() {
  const std::unique_ptr<std::string> inputs(inputs_);
  detail::add(name_, category_, node_, block_, begin_ns_, inputs ? std::move(*inputs) : std::string());
}

}  // namespace hybridnet::profile
