// The core budget and parallel loops. All work on more than one core goes through here, so that operators, oneDNN and
// engine workers never oversubscribe the machine.
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace hybridnet {

// On a machine with at most this many cores, work that is worth two cores gets all: the next operator then reads its
// input from the same caches, and helper threads that another operator has just used cost little.
inline constexpr int kSmallMachine = 8;

int cpu_cores();                // cores this process may use: affinity, cgroup quota, HYBRIDNET_NUM_THREADS
void set_cpu_cores(int cores);  // for tests and mx.engine users; >= 1
int free_cores();               // not claimed by a CoreLease at this moment
bool uses_all_cores();          // true if cpu_cores() is at least the number that the system grants

// The number of cores that parallel regions opened by this thread may use now. 1 inside a parallel region or a cheap
// task. A thread without a scope or lease may use the free cores: parallel_for claims them for each region.
int current_cores();

// Lets the calling thread use `cores` cores while it lives (also oneDNN on this thread), then restores the old number.
class CoreScope {
 public:
  explicit CoreScope(int cores);
  ~CoreScope();
  CoreScope(const CoreScope&) = delete;

 private:
  int before_;
};

// Claims up to `wanted` cores, at least 1, from the process-wide budget while a compute task runs, then returns them.
// On a thread that has a scope or lease already it claims nothing and is bounded by that scope or lease.
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

// Calls f(begin, end) for disjoint ranges covering [0, count), on up to current_cores() threads; each may call it
// several times. Ranges hold at least `grain` items. The first exception of f reaches the caller. Runs on the caller
// alone when count <= grain.
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

// The number of items of about `ns_each` nanoseconds that are worth a core of their own; at least 1.
int64_t items_per_core(double ns_each);

// True if `count` items of about `ns_each` nanoseconds are work for one core only. Needs no division, so that small
// calls can afford it.
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
