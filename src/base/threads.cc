#include "hybridnet/threads.h"

#include <omp.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <mutex>
#include <utility>

#include "base/team.h"
#include "hybridnet/env.h"

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

// Defined in libhybridnet_threads_init.so, if that is part of the build.
extern "C" __attribute__((weak)) void hybridnet_unset_openmp_bounds();

namespace hybridnet {
namespace {

// Runs after the initializer of libgomp, which this library depends on.
__attribute__((constructor)) void unset_openmp_bounds() {
  if (hybridnet_unset_openmp_bounds != nullptr) hybridnet_unset_openmp_bounds();
}

// 0: the thread has no scope of its own; it claims cores for each parallel region.
thread_local int thread_cores = 0;
// The largest team that this thread opened. libgomp ends the threads that a smaller team does not need and makes new
// ones for the next larger team, at tens of microseconds each. So teams do not shrink; idle threads return at once.
thread_local int thread_team = 1;
thread_local int thread_team_limit = INT32_MAX;
// Set in the child of a fork for the thread that forked: its OpenMP team did not survive, so it must never open one.
thread_local bool thread_lost_team = false;

// When this thread last looked where the other threads of its team run.
struct TeamPlace {
  int64_t looked = 0, moved = 0;  // times
  int64_t pause_ns = 0;           // until it looks again, after a stall
};
thread_local TeamPlace thread_place;

// Of work on one core. Threads of a team that share a core lose 50 to 70 us in each region.
constexpr double kBriefRegionNs = 250e3;
constexpr int64_t kLookEveryNs = 250'000;  // a look costs a region: 0.8 us
// A brief region that takes longer than this has waited for a foreign thread, whose turn takes 3 ms or more.
constexpr double kStallNs = 1e6, kStallFactor = 4;
constexpr int64_t kMinPauseNs = 20'000'000, kMaxPauseNs = 2'000'000'000, kSoonAgain = 4;

int64_t now_ns() { return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1); }

int affinity_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, omp_get_num_procs());  // more cores than cpu_set_t can name
}

// Cores that a container's CPU quota pays for, rounded up; INT32_MAX without a quota.
int quota_cores() {
  constexpr int kNoQuota = INT32_MAX;
  long long quota = -1;
  long long period = -1;
  if (std::FILE* file = std::fopen("/sys/fs/cgroup/cpu.max", "r")) {  // cgroup 2: "max 100000" or "150000 100000"
    if (std::fscanf(file, "%lld %lld", &quota, &period) != 2) quota = -1;
    std::fclose(file);
  } else {  // cgroup 1
    auto read = [](const char* path) {
      long long value = -1;
      if (std::FILE* f = std::fopen(path, "r")) {
        if (std::fscanf(f, "%lld", &value) != 1) value = -1;
        std::fclose(f);
      }
      return value;
    };
    quota = read("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
    period = read("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  }
  if (quota <= 0 || period <= 0) return kNoQuota;
  return static_cast<int>(std::clamp<long long>((quota + period - 1) / period, 1, kNoQuota));
}

struct Budget {
  Budget() {
    const int asked = environment().num_threads;
    const int cores = asked > 0 ? asked : granted;
    total.store(cores, std::memory_order_relaxed);
    free.store(cores, std::memory_order_relaxed);
  }
  const int granted = std::min(affinity_cores(), quota_cores());
  std::atomic<int> total{1};
  std::atomic<int> free{1};  // below zero while more is claimed than set_cpu_cores() has left
};

Budget& budget() {
  static Budget instance;
  return instance;
}

int take_free_cores(int wanted) {
  std::atomic<int>& free = budget().free;
  int available = free.load(std::memory_order_relaxed);
  while (available > 0) {
    const int taken = std::min(available, wanted);
    if (free.compare_exchange_weak(available, available - taken, std::memory_order_acq_rel)) return taken;
  }
  return 0;
}

std::pair<int, int> claim(int wanted) {
  wanted = std::max(wanted, 1);
  if (thread_lost_team) return {1, 0};
  if (thread_cores > 0) return {std::min(wanted, thread_cores), 0};  // part of what this thread was given before
  const int taken = take_free_cores(wanted);
  return {std::max(taken, 1), taken};  // nothing is free: run on this thread's own core
}

// Inside a region each thread, the opener included, has one core: nested loops run serially.
class RegionScope {
 public:
  RegionScope() : before_(std::exchange(thread_cores, 1)) {}
  ~RegionScope() { thread_cores = before_; }
  RegionScope(const RegionScope&) = delete;

 private:
  int before_;
};

class FirstException {
 public:
  void capture() {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::current_exception();
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr error_;
};

// libgomp is not built with the thread sanitizer, so the sanitizer cannot see the barriers around a parallel region.
// These calls announce the barriers; in other builds they do nothing.
#if defined(__SANITIZE_THREAD__)
struct RegionEdges {
  void opens() { __tsan_release(&open_); }
  void thread_begins() { __tsan_acquire(&open_); }
  void thread_ends() { __tsan_release(&close_); }
  void closed() { __tsan_acquire(&close_); }

 private:
  char open_ = 0, close_ = 0;
};
#define HYBRIDNET_UNCHECKED_FRAME __attribute__((no_sanitize("thread"), noinline))
#else
struct RegionEdges {
  void opens() {}
  void thread_begins() {}
  void thread_ends() {}
  void closed() {}
};
#define HYBRIDNET_UNCHECKED_FRAME
#endif

void run_part(int part, int parts, int64_t count, detail::RangeFn fn, void* closure, FirstException& first) {
  const RegionScope alone;
  const int64_t base = count / parts;
  const int64_t longer = count % parts;  // the first `longer` parts hold one item more
  const int64_t begin = part * base + std::min<int64_t>(part, longer);
  try {
    fn(closure, begin, begin + base + (part < longer ? 1 : 0));
  } catch (...) {
    first.capture();
  }
}

// Unchecked, because threads of the team read this frame before they can call thread_begins().
HYBRIDNET_UNCHECKED_FRAME void run_on_team(int parts, int64_t count, detail::RangeFn fn, void* closure) {
  const int team = std::max(parts, std::min({thread_team, thread_team_limit, cpu_cores()}));
  thread_team = team;
  FirstException first;
  RegionEdges edges;
  edges.opens();
#pragma omp parallel num_threads(team)
  {
    edges.thread_begins();
#pragma omp for schedule(static, 1) nowait
    for (int part = 0; part < parts; ++part) run_part(part, parts, count, fn, closure, first);
    edges.thread_ends();
  }
  edges.closed();
  first.rethrow();
}

// Returns whether a thread of the team was there.
bool move_team_off_this_core(int threads) {
  if (thread_lost_team || omp_get_proc_bind() != omp_proc_bind_false) return false;
  const int core = sched_getcpu();
  cpu_set_t all;
  if (core < 0 || sched_getaffinity(0, sizeof(all), &all) != 0 || CPU_COUNT(&all) == 1 || CPU_COUNT(&all) > threads)
    return false;
  cpu_set_t others = all;
  CPU_CLR(core, &others);
  std::atomic<bool> moved{false};
  auto move = [&](int64_t, int64_t) {
    if (omp_get_thread_num() == 0 || sched_getcpu() != core) return;
    if (sched_setaffinity(0, sizeof(others), &others) != 0) return;  // moves at once
    sched_setaffinity(0, sizeof(all), &all);
    moved.store(true, std::memory_order_relaxed);
  };
  run_on_team(
      threads, threads, [](void* c, int64_t b, int64_t e) { (*static_cast<decltype(move)*>(c))(b, e); }, &move);
  return moved.load(std::memory_order_relaxed);
}

}  // namespace

TeamRegion::TeamRegion(int threads, double work_ns) : work_ns_(work_ns) {
  if (work_ns >= kBriefRegionNs) return;
  begin_ = now_ns();
  TeamPlace& place = thread_place;
  if (begin_ - place.looked < std::max(kLookEveryNs, place.pause_ns)) return;
  place.looked = begin_;
  if (move_team_off_this_core(threads)) place.moved = begin_;
}

TeamRegion::~TeamRegion() {
  TeamPlace& place = thread_place;
  if (begin_ == 0 || begin_ - place.moved > kMinPauseNs) return;
  const int64_t end = now_ns();
  if (static_cast<double>(end - begin_) < kStallNs + kStallFactor * work_ns_) return;
  const bool again = end - place.looked < kSoonAgain * place.pause_ns;
  place.pause_ns = again ? std::min(2 * place.pause_ns, kMaxPauseNs) : kMinPauseNs;
  place.looked = end;
}

int cpu_cores() { return budget().total.load(std::memory_order_relaxed); }

void set_cpu_cores(int cores) {
  cores = std::max(cores, 1);
  Budget& b = budget();
  const int before = b.total.exchange(cores, std::memory_order_acq_rel);
  b.free.fetch_add(cores - before, std::memory_order_acq_rel);
  if (thread_cores == 0 && !thread_lost_team) omp_set_num_threads(cores);
}

int free_cores() { return std::max(0, budget().free.load(std::memory_order_relaxed)); }

bool uses_all_cores() { return cpu_cores() >= budget().granted; }

TeamLimit::TeamLimit(int threads) : before_(std::exchange(thread_team_limit, threads)) {}
TeamLimit::~TeamLimit() { thread_team_limit = before_; }

int current_cores() {
  if (thread_lost_team) return 1;
  return thread_cores > 0 ? thread_cores : cpu_cores();
}

// Inside a region OpenMP's number of threads is the opener's, not thread_cores. oneDNN asks OpenMP, so it is set here.
CoreScope::CoreScope(int cores) : before_(thread_cores) {
  thread_cores = thread_lost_team ? 1 : std::max(cores, 1);
  thread_team = std::max(thread_team, thread_cores);
  if (thread_cores != before_ || omp_in_parallel()) omp_set_num_threads(thread_cores);
}

CoreScope::~CoreScope() {
  if (thread_cores != before_) omp_set_num_threads(thread_lost_team ? 1 : before_ > 0 ? before_ : cpu_cores());
  thread_cores = before_;
}

CoreLease::CoreLease(int wanted) : CoreLease(claim(wanted)) {}
CoreLease::CoreLease(std::pair<int, int> cores_and_taken)
    : cores_(cores_and_taken.first), taken_(cores_and_taken.second), scope_(cores_) {}
CoreLease::~CoreLease() {
  if (taken_ > 0) budget().free.fetch_add(taken_, std::memory_order_acq_rel);
}

void threads_after_fork_in_child() {
  thread_lost_team = true;
  thread_cores = 0;
  omp_set_num_threads(1);
  budget().free.store(cpu_cores(), std::memory_order_release);  // the other claimants are gone
}

int64_t items_per_core(double ns_each) {
  constexpr double kLeastNs = 0.25;  // no loop over elements is faster than a quarter of a nanosecond
  return std::max<int64_t>(1, static_cast<int64_t>(kNsWorthACore / std::max(ns_each, kLeastNs)));
}

namespace detail {

void parallel_ranges(int64_t count, int64_t grain, RangeFn fn, void* closure) {
  grain = std::max<int64_t>(grain, 1);
  int64_t max_parts = std::max<int64_t>(1, count / grain);
  if (max_parts > 1) max_parts = std::clamp<int64_t>(kSmallMachine, max_parts, count);
  const CoreLease lease(static_cast<int>(std::min<int64_t>(max_parts, current_cores())));
  if (lease.cores() == 1) return fn(closure, 0, count);
  const TeamRegion region(lease.cores(), kNsWorthACore * static_cast<double>(count) / static_cast<double>(grain));
  run_on_team(lease.cores(), count, fn, closure);
}

}  // namespace detail
}  // namespace hybridnet
