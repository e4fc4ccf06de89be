// The core budget and the one way to run a loop in parallel. Everything that wants more than one core goes through
// here, so that operators, oneDNN and engine workers never oversubscribe the machine.
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace hybridnet {

// Up to so many cores, work that is worth two is given all: what one operator leaves in the caches of all cores the
// next one reads there, and helpers that another operator has just used cost little.
inline constexpr int kSmallMachine = 8;

int cpu_cores();                // cores this process may use: affinity, cgroup quota, HYBRIDNET_NUM_THREADS
void set_cpu_cores(int cores);  // for tests and mx.engine users; >= 1
int free_cores();               // not claimed by a CoreLease at this moment
bool uses_all_cores();          // cpu_cores() are all that the system grants, none is left beside them

// How many cores parallel regions opened by this thread may use now. 1 inside a parallel region or a cheap task. A
// thread without a scope or lease may use what is free: parallel_for claims it for each region.
int current_cores();

// Gives the calling thread `cores` for its lifetime (also to oneDNN on this thread), restores what was before.
class CoreScope {
 public:
  explicit CoreScope(int cores);
  ~CoreScope();
  CoreScope(const CoreScope&) = delete;

 private:
  int before_;
};

// Claims up to `wanted` cores from the process-wide budget while a compute task runs (>= 1 always), gives them back
// after. On a thread that has a scope or lease already it claims nothing and is bounded by that one.
class CoreLease {
 public:
  explicit CoreLease(int wanted);
  ~CoreLease();
  CoreLease(const CoreLease&) = delete;
  int cores() const { return cores_; }

 private:
  explicit CoreLease(std::pair<int, int> cores_and_taken);
  int cores_;
  int taken_;
  CoreScope scope_;
};

// Called in the child of a fork, on the thread that forked (Runtime registers it): this thread runs its loops serially
// from now on, since such children are workers beside others; threads started by the child are not affected.
void threads_after_fork_in_child();

namespace detail {
using RangeFn = void (*)(void* closure, int64_t begin, int64_t end);
void parallel_ranges(int64_t count, int64_t grain, RangeFn fn, void* closure);
}  // namespace detail

// Calls f(begin, end) for disjoint ranges covering [0, count), on up to current_cores() threads, of which each may call
// it several times; ranges hold at least `grain` items. Exceptions of f reach the caller (the first one). Runs on the
// caller alone when count <= grain.
template <std::integral Grain, typename F>
void parallel_for(int64_t count, Grain grain, F&& f) {
  if (count <= 0) return;
  if (count <= static_cast<int64_t>(grain) || current_cores() == 1) {
    f(int64_t{0}, count);
    return;
  }
  using Fn = std::remove_reference_t<F>;
  detail::parallel_ranges(
      count, grain, [](void* c, int64_t b, int64_t e) { (*static_cast<Fn*>(c))(b, e); },
      const_cast<void*>(static_cast<const void*>(&f)));
}

// A team costs a few microseconds to wake, more on a busy machine: a share of less work than this does not pay.
inline constexpr double kNsWorthACore = 20000;

// How many items of about `ns_each` nanoseconds are worth a core of their own; at least 1.
int64_t items_per_core(double ns_each);

// Whether `count` items of about `ns_each` nanoseconds are work for one core only. Takes no division, so that small
// calls can ask.
inline bool is_work_for_one_core(int64_t count, double ns_each) {
  return static_cast<double>(count) * ns_each <= kNsWorthACore;
}

// The same for items that take about `ns_each` nanoseconds each.
template <std::floating_point Ns, typename F>
void parallel_for(int64_t count, Ns ns_each, F&& f) {
  if (count > 0 && is_work_for_one_core(count, ns_each)) {
    f(int64_t{0}, count);
    return;
  }
  parallel_for(count, items_per_core(ns_each), std::forward<F>(f));
}

}  // namespace hybridnet
