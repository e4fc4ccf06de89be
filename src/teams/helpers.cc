#include "teams/helpers.h"

#include <array>
#include <system_error>
#include <thread>

#include "teams/float_errors.h"
#include "teams/region.h"
#include "teams/waiting.h"

namespace hybridnet::teams {
namespace {

// Helpers live as long as the process. The idle ones are a stack with the one that was busy last on top: it still
// spins. The low half of `top` holds an index + 1, the high half a count of changes, by which a thread detects that the
// stack has changed since it read `top`.
class Pool {
 public:
  Helper* take_idle() {
    uint64_t top = top_.load(std::memory_order_acquire);
    while (index_of(top) != 0) {
      Helper* helper = at(index_of(top));
      const uint64_t next = changed(top, helper->next_idle.load(std::memory_order_relaxed));
      if (top_.compare_exchange_weak(top, next, std::memory_order_acq_rel, std::memory_order_acquire)) return helper;
    }
    return nullptr;
  }

  void push_idle(Helper* helper) {
    uint64_t top = top_.load(std::memory_order_relaxed);
    do {
      helper->next_idle.store(index_of(top), std::memory_order_relaxed);
    } while (!top_.compare_exchange_weak(top, changed(top, helper->index + 1), std::memory_order_acq_rel,
                                         std::memory_order_relaxed));
  }

  Helper* make();

  // For the child of a fork, where no helper exists.
  void forget_all() {
    top_.store(0, std::memory_order_relaxed);
    count_.store(0, std::memory_order_relaxed);
  }

 private:
  static uint32_t index_of(uint64_t top) { return static_cast<uint32_t>(top); }
  static uint64_t changed(uint64_t top, uint32_t index) { return ((top >> 32) + 1) << 32 | index; }
  Helper* at(uint32_t index_plus_1) { return helpers_[index_plus_1 - 1].load(std::memory_order_acquire); }

  std::atomic<uint64_t> top_{0};
  std::atomic<uint32_t> count_{0};
  std::array<std::atomic<Helper*>, 8192> helpers_{};
};

Pool& pool() {
  static auto* const instance = new Pool;  // helpers outlive static destruction
  return *instance;
}

void sleep_until_woken(Helper& self) {
  self.asleep.store(1);
  while (self.asleep.load() == 1 && self.work.load() == nullptr) sleep_on(self.asleep, 1);
  self.asleep.store(0);
}

Team& next_team(Helper& self, SpinLimit& limit) {
  const int64_t begin = now_ns();
  bool slept = false;
  for (;;) {
    limit.spin([&] { return self.work.load(std::memory_order_relaxed) != nullptr; }, [](int64_t) {});
    if (Team* team = self.work.exchange(nullptr, std::memory_order_acq_rel)) {
      if (slept) limit.slept(now_ns() - begin);
      return *team;
    }
    slept = true;
    sleep_until_woken(self);
  }
}

// Moves the helper off the core of the opener. The system often wakes a thread on the core of the thread that wakes it.
// Two members of a team that share a core take turns on it, and each spins while it holds the core that the other
// needs, for as long as the process lives.
void leave_core_of_opener(const Team& team, const Helper& self) {
  if (self.kept || team.opener_core < 0 || sched_getcpu() != team.opener_core || crowding.now(now_ns())) return;
  cpu_set_t all;
  CPU_ZERO(&all);
  if (sched_getaffinity(0, sizeof(all), &all) != 0 || CPU_COUNT(&all) == 1) return;
  cpu_set_t others = all;
  CPU_CLR(team.opener_core, &others);
  if (sched_setaffinity(0, sizeof(others), &others) == 0) sched_setaffinity(0, sizeof(all), &all);  // moves at once
}

[[noreturn]] void serve(Helper& self) {
  pthread_setname_np(pthread_self(), "hybridnet-team");
  SpinLimit limit;
  for (;;) {
    Team& team = next_team(self, limit);
    team.unstarted.fetch_sub(1, std::memory_order_relaxed);
    leave_core_of_opener(team, self);
    membership() = {&team, self.number, 1};
    team.body(team.data);
    if (const unsigned errors = forget_float_errors()) team.float_errors.fetch_or(errors, std::memory_order_relaxed);
    membership() = {};
    if (!self.kept) pool().push_idle(&self);
    team.done(1);  // the last access to the team; the opener may assign this helper its next work at once
  }
}

Helper* Pool::make() {
  const uint32_t index = count_.fetch_add(1, std::memory_order_relaxed);
  if (index >= helpers_.size()) {
    count_.fetch_sub(1, std::memory_order_relaxed);
    return nullptr;
  }
  auto* helper = new Helper;
  helper->index = index;
  helpers_[index].store(helper, std::memory_order_release);
  try {
    std::thread thread([helper] { serve(*helper); });
    helper->thread = thread.native_handle();
    thread.detach();
  } catch (const std::system_error&) {
    return nullptr;  // its place stays empty
  }
  return helper;
}

[[gnu::constructor]] void follow_forks() {
  pthread_atfork(nullptr, nullptr, [] {
    pool().forget_all();
    forget_kept_helpers();
  });
}

}  // namespace

Helper* take_helper() {
  Helper* idle = pool().take_idle();
  return idle != nullptr ? idle : pool().make();
}

void give_back(Helper* helper) { pool().push_idle(helper); }

void assign(Helper* helper, Team* team, int number) {
  helper->number = number;
  helper->work.store(team);
  if (helper->asleep.load() == 1 && helper->asleep.exchange(0) == 1) wake_all(helper->asleep);
}

bool retract(Helper* helper, Team* team) {
  return helper->work.compare_exchange_strong(team, nullptr, std::memory_order_acq_rel);
}

}  // namespace hybridnet::teams
