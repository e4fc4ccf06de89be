#include "engine/run_ahead.h"

#include <chrono>
#include <new>

#include "engine/spin.h"
#include "engine/task.h"
#include "hybridnet/env.h"

namespace hybridnet {
namespace {

constexpr int64_t kTaskBytes = 1024;      // a queued task itself, roughly, with its closure
constexpr int64_t kCostlyNs = 1'000'000;  // from here on a task counts by its cost, and is worth a wait for it
constexpr int64_t kAlwaysQueued = 2;      // costly tasks that may be queued whatever they cost: the next one and
                                          // one more, so that a worker never waits for the pushing thread
constexpr auto kSpin = std::chrono::microseconds(20);
constexpr auto kLook = std::chrono::milliseconds(50);  // between questions whether the thread is wanted

}  // namespace

RunAhead::Charge RunAhead::charge(int64_t bytes, int64_t cost_ns) {
  if (!has_room(cost_ns) && !TaskScope::inside()) wait_for_room(cost_ns);
  bytes += kTaskBytes;
  bytes_.fetch_add(bytes, std::memory_order_relaxed);
  if (cost_ns >= kCostlyNs) {
    cost_ns_.fetch_add(cost_ns, std::memory_order_relaxed);
    costly_.fetch_add(1, std::memory_order_relaxed);
  }
  return {this, bytes, cost_ns};
}

// Cheap tasks wait for memory only: they go to the end of the queue, and what they hold is little.
bool RunAhead::has_room(int64_t cost_ns) const {
  if (!limited_.load(std::memory_order_relaxed)) return true;
  if (limits_.bytes >= 0 && bytes_.load() > limits_.bytes) return false;
  return limits_.cost_ns < 0 || cost_ns < kCostlyNs || costly_.load() < kAlwaysQueued ||
         cost_ns_.load() <= limits_.cost_ns;
}

void RunAhead::wait_for_room(int64_t cost_ns) {
  auto ready = [&] { return has_room(cost_ns); };
  waits_.fetch_add(1, std::memory_order_relaxed);
  void* begun = hooks_.begin ? hooks_.begin() : nullptr;
  if (!spin_until(ready, kSpin)) {
    bool wanted = false;
    while (!wanted) {
      {
        std::unique_lock lock(mutex_);
        waiting_.fetch_add(1);  // before ready() looks: discharge() changes the sums, then looks who waits
        const bool found = room_.wait_for(lock, kLook, ready);
        waiting_.fetch_sub(1);
        if (found) break;
      }
      wanted = hooks_.wanted && hooks_.wanted();
    }
  }
  if (hooks_.end) hooks_.end(begun);
}

void RunAhead::discharge(int64_t bytes, int64_t cost_ns) {
  if (cost_ns >= kCostlyNs) {
    cost_ns_.fetch_sub(cost_ns, std::memory_order_relaxed);
    costly_.fetch_sub(1);
  }
  bytes_.fetch_sub(bytes);
  if (waiting_.load() == 0) return;
  const std::lock_guard lock(mutex_);
  room_.notify_all();
}

void RunAhead::forget_after_fork() {
  new (&mutex_) std::mutex();
  new (&room_) std::condition_variable();
  bytes_.store(0);
  cost_ns_.store(0);
  costly_.store(0);
  waiting_.store(0);
}

RunAhead& run_ahead() {
  // Never destroyed: tasks may end after main() does.
  static RunAhead* const ahead = [] {
    const Environment& env = environment();
    return new RunAhead({.bytes = env.run_ahead_bytes, .cost_ns = env.run_ahead_ns});
  }();
  return *ahead;
}

}  // namespace hybridnet
