#include "engine/run_ahead.h"

#include <algorithm>
#include <chrono>
#include <new>

#include "engine/spin.h"
#include "engine/task.h"
#include "hybridnet/env.h"

namespace hybridnet {
namespace {

constexpr int64_t kMinChargeNs = 5'000;  // bounds the number of small tasks
constexpr int64_t kAlwaysQueued = 2;     // tasks of any cost, so that a worker never waits for the pushing thread
constexpr auto kSpin = std::chrono::microseconds(20);
constexpr auto kPoll = std::chrono::milliseconds(50);  // between calls of WaitHooks::wanted

}  // namespace

RunAhead::Charge RunAhead::charge(int64_t cost_ns) {
  if (!has_room(limit_ns_) && !TaskScope::inside()) wait_for_room();
  cost_ns = std::max(cost_ns, kMinChargeNs);
  cost_ns_.fetch_add(cost_ns, std::memory_order_relaxed);
  tasks_.fetch_add(1, std::memory_order_relaxed);
  return {this, cost_ns};
}

bool RunAhead::has_room(int64_t limit_ns) const {
  return limit_ns_ < 0 || cost_ns_.load() <= limit_ns || tasks_.load() < kAlwaysQueued ||
         !limited_.load(std::memory_order_relaxed);
}

void RunAhead::wait_for_room() {
  auto ready = [this] { return has_room(limit_ns_ / 2); };
  waits_.fetch_add(1, std::memory_order_relaxed);
  const FrontEndPause pause(*this);
  if (spin_until(ready, kSpin)) return;
  bool wanted = false;
  while (!wanted) {
    {
      std::unique_lock lock(mutex_);
      waiting_.fetch_add(1);  // before ready() reads the sums: discharge() changes them first, then reads waiting_
      const bool found = room_.wait_for(lock, kPoll, ready);
      waiting_.fetch_sub(1);
      if (found) return;
    }
    wanted = hooks_.wanted && hooks_.wanted();
  }
}

void RunAhead::discharge(int64_t cost_ns) {
  cost_ns_.fetch_sub(cost_ns);
  tasks_.fetch_sub(1);
  if (waiting_.load() == 0 || !has_room(limit_ns_ / 2)) return;
  const std::lock_guard lock(mutex_);
  room_.notify_all();
}

void RunAhead::forget_after_fork() {
  new (&mutex_) std::mutex();
  new (&room_) std::condition_variable();
  cost_ns_.store(0);
  tasks_.store(0);
  waiting_.store(0);
}

RunAhead& run_ahead() {
  // Never destroyed: tasks may end after main() does.
  static RunAhead* const ahead = new RunAhead(environment().run_ahead_ns);
  return *ahead;
}

}  // namespace hybridnet
