#include "teams/region.h"

#include <algorithm>

#include "teams/float_errors.h"
#include "teams/waiting.h"

namespace hybridnet::teams {
namespace {

thread_local Membership this_thread;
thread_local SpinLimit opener_limit, barrier_limit;
thread_local Helper* kept_helpers = nullptr;
std::atomic<int> default_threads{1};

void release_kept_helpers() {
  while (kept_helpers != nullptr) {
    Helper* helper = kept_helpers;
    kept_helpers = helper->next;
    pthread_setaffinity_np(helper->thread, sizeof(helper->cores), &helper->cores);
    helper->kept = false;
    give_back(helper);
  }
}

struct ReleaseAtEnd {
  ~ReleaseAtEnd() { release_kept_helpers(); }
};

}  // namespace

Membership& membership() { return this_thread; }

void forget_kept_helpers() { kept_helpers = nullptr; }

void keep_helpers(int count) {
  thread_local ReleaseAtEnd at_end;
  release_kept_helpers();
  for (int i = 0; i < count; ++i) {
    Helper* helper = take_helper();
    if (helper == nullptr) return;
    pthread_getaffinity_np(helper->thread, sizeof(helper->cores), &helper->cores);
    helper->kept = true;
    helper->next = kept_helpers;
    kept_helpers = helper;
  }
}

void Team::done(uint32_t helpers) {
  if (unfinished.fetch_sub(helpers, std::memory_order_acq_rel) == (kOpenerSleeps | helpers)) wake_all(unfinished);
}

Region::Region(int threads, Body body, void* data) : before_(this_thread) {
  team_.body = body;
  team_.data = data;
  if (threads > 1) take_helpers(std::min(threads, kMaxThreads) - 1);
  this_thread = {&team_, 0, team_.threads > 1 ? 1 : before_.most_threads};
  if (team_.threads == 1) return;
  begin_ = now_ns();
  team_.opener_core = sched_getcpu();
  team_.unfinished.store(static_cast<uint32_t>(team_.threads - 1), std::memory_order_relaxed);
  team_.unstarted.store(team_.threads - 1, std::memory_order_relaxed);
  for (int number = 1; number < team_.threads; ++number)
    assign(helpers_[static_cast<size_t>(number - 1)], &team_, number);
}

void Region::take_helpers(int count) {
  Helper* of_mine = kept_helpers;
  const bool keeps = of_mine != nullptr;
  for (int i = 0; i < count; ++i) {
    Helper* helper = keeps ? of_mine : take_helper();
    if (helper == nullptr) return;
    if (keeps) of_mine = helper->next;
    helpers_[static_cast<size_t>(i)] = helper;
    ++team_.threads;
  }
}

Region::~Region() {
  if (team_.threads > 1) wait_for_helpers();
  if (const unsigned errors = team_.float_errors.load(std::memory_order_relaxed)) remember_float_errors(errors);
  this_thread = before_;
}

bool Region::retract(int number) {
  Helper* helper = helpers_[static_cast<size_t>(number - 1)];
  if (!teams::retract(helper, &team_)) return false;
  team_.unstarted.fetch_sub(1, std::memory_order_relaxed);
  if (kept_helpers == nullptr) give_back(helper);
  return true;
}

void Region::retract_unstarted() {
  uint32_t retracted = 0;
  for (int number = 1; number < team_.threads && team_.unstarted.load(std::memory_order_relaxed) > 0; ++number)
    retracted += retract(number) ? 1 : 0;
  if (retracted > 0) team_.done(retracted);
}

// From the last member on: the first ones are more likely to begin meanwhile. Members may meet at barriers: members
// that were not taken back still begin by themselves.
void Region::run_unstarted() {
  for (int number = team_.threads - 1; number > 0 && team_.unstarted.load(std::memory_order_relaxed) > 0; --number) {
    if (!retract(number)) continue;
    this_thread.number = number;
    team_.body(team_.data);
    this_thread.number = 0;
    team_.done(1);
  }
}

void Region::wait_for_helpers() {
  constexpr int64_t kStallNs = 1'000'000, kStallFactor = 4, kYieldNs = 20'000;
  const auto all_done = [&] { return team_.unfinished.load(std::memory_order_acquire) == 0; };
  if (all_done()) return;
  const int64_t own_end = now_ns();
  const bool spun = opener_limit.spin(all_done, [&](int64_t passed) {
    // A member that has not begun may wait for this core.
    if (passed > kYieldNs && team_.unstarted.load(std::memory_order_relaxed) > 0) sched_yield();
  });
  if (!spun) {
    uint32_t left = team_.unfinished.fetch_or(Team::kOpenerSleeps, std::memory_order_acq_rel) | Team::kOpenerSleeps;
    while (left != Team::kOpenerSleeps) {
      sleep_on(team_.unfinished, left);
      left = team_.unfinished.load(std::memory_order_acquire);
    }
    opener_limit.slept(now_ns() - own_end);
  }
  const int64_t waited = now_ns() - own_end;
  if (waited > kStallNs && waited > kStallFactor * (own_end - begin_)) crowding.saw_stall(own_end + waited);
}

void barrier(Team& team) {
  if (team.threads == 1) return;
  const uint32_t round = team.barriers.load(std::memory_order_acquire);
  if (team.arrived.fetch_add(1, std::memory_order_acq_rel) + 1 == team.threads) {
    team.arrived.store(0, std::memory_order_relaxed);
    team.barriers.fetch_add(1, std::memory_order_acq_rel);
    wake_all(team.barriers);
    return;
  }
  const auto open = [&] { return team.barriers.load(std::memory_order_acquire) != round; };
  if (barrier_limit.spin(open, [](int64_t) {})) return;
  while (!open()) sleep_on(team.barriers, round);
}

void run(int threads, Body body, void* data) {
  const Region region(in_team() ? 1 : threads, body, data);
  body(data);
}

void run_while_there_is_work(int threads, Body body, void* data) {
  Region region(in_team() ? 1 : threads, body, data);
  body(data);
  region.retract_unstarted();
}

int number_in_team() { return this_thread.number; }
int threads_of_team() { return this_thread.team != nullptr ? this_thread.team->threads : 1; }
bool in_team() { return threads_of_team() > 1; }

void set_most_threads(int threads) { this_thread.most_threads = threads; }
void set_default_threads(int threads) { default_threads.store(threads, std::memory_order_relaxed); }
int most_threads() {
  if (this_thread.most_threads > 0) return this_thread.most_threads;
  return default_threads.load(std::memory_order_relaxed);
}

}  // namespace hybridnet::teams
