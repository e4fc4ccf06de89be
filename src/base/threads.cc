#include "hybridnet/threads.h"

#include <sched.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "hybridnet/env.h"
#include "teams/team.h"

namespace hybridnet {
namespace {

// 0: the thread has no scope of its own; it claims cores for each parallel region.
thread_local int thread_cores = 0;
// Set in the child of a fork for the thread that forked: it runs its loops alone.
thread_local bool thread_lost_team = false;

int affinity_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));  // more cores than cpu_set_t can name
}

// The number of cores of a container's CPU quota, rounded up; INT32_MAX without a quota.
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
    teams::set_default_threads(cores);
  }
  const int granted = std::min(affinity_cores(), quota_cores());
  std::atomic<int> total{1};
  std::atomic<int> free{1};  // below zero while more cores are claimed than exist
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
  if (thread_cores > 0) return {std::min(wanted, thread_cores), 0};  // some of the cores that this thread already has
  if (const int taken = take_free_cores(wanted); taken > 0) return {taken, taken};
  // No core is free: the work runs on this thread's own core, which counts as claimed for later claims.
  budget().free.fetch_sub(1, std::memory_order_acq_rel);
  return {1, 1};
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

void run_part(int64_t part, int64_t parts, int64_t count, detail::RangeFn fn, void* closure, FirstException& first) {
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

// The parts of a loop, with one row of adjacent parts for each member of the team, so that the next loop over the same
// array finds them in the caches of the same core. Members that are done with their row take parts from other rows, so
// a core that is slower, or whose thread wakes late, does not delay the loop.
class Rows {
 public:
  Rows(int members, int64_t length) : members_(members), length_(length) {
    if (members > kFew) many_ = std::make_unique<Row[]>(static_cast<size_t>(members));
  }

  // Calls f(part) for all parts that no other member has taken, beginning with the row of `member`.
  template <typename F>
  void take(int member, const F& f) {
    for (int i = 0; i < members_; ++i) {
      const int64_t owner = (member + i) % members_;
      std::atomic<int64_t>& next = row(owner).next;
      while (next.load(std::memory_order_relaxed) < length_) {
        const int64_t place = next.fetch_add(1, std::memory_order_relaxed);
        if (place < length_) f(owner * length_ + place);
      }
    }
  }

 private:
  static constexpr int kFew = 32;
  struct alignas(64) Row {
    std::atomic<int64_t> next{0};
  };
  Row& row(int64_t owner) { return many_ ? many_[static_cast<size_t>(owner)] : few_[static_cast<size_t>(owner)]; }
  const int members_;
  const int64_t length_;
  std::array<Row, kFew> few_;
  std::unique_ptr<Row[]> many_;
};

void run_on_team(int members, int64_t length, int64_t count, detail::RangeFn fn, void* closure) {
  FirstException first;
  Rows rows(members, length);
  auto member = [&] {
    rows.take(teams::number_in_team(),
              [&](int64_t part) { run_part(part, members * length, count, fn, closure, first); });
  };
  teams::run_while_there_is_work(
      members, [](void* f) { (*static_cast<decltype(member)*>(f))(); }, &member);
  first.rethrow();
}

}  // namespace

int cpu_cores() { return budget().total.load(std::memory_order_relaxed); }

void set_cpu_cores(int cores) {
  cores = std::max(cores, 1);
  Budget& b = budget();
  const int before = b.total.exchange(cores, std::memory_order_acq_rel);
  b.free.fetch_add(cores - before, std::memory_order_acq_rel);
  teams::set_default_threads(cores);
}

int free_cores() { return std::max(0, budget().free.load(std::memory_order_relaxed)); }

bool uses_all_cores() { return cpu_cores() >= budget().granted; }

int current_cores() {
  if (thread_lost_team) return 1;
  return thread_cores > 0 ? thread_cores : cpu_cores();
}

CoreScope::CoreScope(int cores) : before_(thread_cores) {
  thread_cores = thread_lost_team ? 1 : std::max(cores, 1);
  teams::set_most_threads(thread_cores);
}

CoreScope::~CoreScope() {
  thread_cores = before_;
  teams::set_most_threads(thread_lost_team ? 1 : before_);
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
  teams::set_most_threads(1);
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
  constexpr int64_t kMostPieces = 4;  // per member
  const int64_t pieces = std::clamp<int64_t>(count / (grain * lease.cores()), 1, kMostPieces);
  run_on_team(lease.cores(), pieces, count, fn, closure);
}

}  // namespace detail
}  // namespace hybridnet
