#include "base/pinning.h"

#include <sched.h>

#include <atomic>
#include <cstring>
#include <optional>
#include <string>

#include "hybridnet/error.h"
#include "hybridnet/threads.h"
#include "teams/team.h"

namespace hybridnet {
namespace {

struct Pinned {
  cpu_set_t before;  // the cores that the thread could run on before
  CoreScope scope;   // gives its regions one thread per core
  explicit Pinned(const cpu_set_t& was, int cores) : before(was), scope(cores) {}
};
thread_local std::optional<Pinned> pinned;

cpu_set_t allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0)
    throw UnsupportedError({.op = "pin_thread", .message = "the system does not say where threads may run"});
  return set;
}

// Calls f(number) on each thread of a team of `threads`: f(0) on the calling thread.
template <typename F>
void on_team(int threads, const F& f) {
  const auto member = [&f] { f(teams::number_in_team()); };
  teams::run(
      threads, [](void* m) { (*static_cast<decltype(member)*>(m))(); },
      const_cast<void*>(static_cast<const void*>(&member)));
}

void check_cores(std::span<const int> cores, const cpu_set_t& allowed) {
  if (static_cast<int>(cores.size()) > cpu_cores())
    throw ValueError({.op = "pin_thread",
                      .input = "cores",
                      .expected = "at most " + std::to_string(cpu_cores()) + ", which the library may use",
                      .given = std::to_string(cores.size())});
  cpu_set_t seen;
  CPU_ZERO(&seen);
  for (const int core : cores) {
    const bool exists = core >= 0 && core < CPU_SETSIZE && CPU_ISSET(core, &allowed);
    if (!exists || CPU_ISSET(core, &seen))
      throw ValueError({.op = "pin_thread",
                        .input = "cores",
                        .expected = "numbers of cores that this process may use, each once",
                        .given = std::to_string(core)});
    CPU_SET(core, &seen);
  }
}

void release() {
  const cpu_set_t before = pinned->before;
  teams::keep_helpers(0);
  sched_setaffinity(0, sizeof(before), &before);
  pinned.reset();
}

}  // namespace

void pin_thread(std::span<const int> cores) {
  cpu_cores();  // counts the cores of the process before this thread has fewer
  const cpu_set_t before = pinned ? pinned->before : allowed_cores();
  check_cores(cores, before);
  if (pinned) release();
  if (cores.empty()) return;
  pinned.emplace(before, static_cast<int>(cores.size()));
  teams::keep_helpers(static_cast<int>(cores.size()) - 1);
  std::atomic<bool> failed{false};
  on_team(static_cast<int>(cores.size()), [&](int thread) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cores[static_cast<size_t>(thread)], &one);
    if (sched_setaffinity(0, sizeof(one), &one) != 0) failed.store(true, std::memory_order_relaxed);
  });
  if (!failed.load(std::memory_order_relaxed)) return;
  release();
  throw UnsupportedError({.op = "pin_thread", .message = "the system does not bind threads to cores"});
}

}  // namespace hybridnet
