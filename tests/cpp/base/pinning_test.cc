#include "base/pinning.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <latch>
#include <set>
#include <thread>
#include <vector>

#include "hybridnet/error.h"
#include "hybridnet/threads.h"

namespace hybridnet {
namespace {

std::vector<int> cores_of_this_thread() {
  cpu_set_t set;
  CPU_ZERO(&set);
  EXPECT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  return cores;
}

// Runs f on a new thread, whose core binding ends with it.
template <typename F>
void on_own_thread(const F& f) {
  std::thread(f).join();
}

// Runs f(number) on each thread of a team, exactly once per thread.
template <typename F>
void on_each_member(size_t threads, const F& f) {
  std::latch all_there(static_cast<std::ptrdiff_t>(threads));
  parallel_for(static_cast<int64_t>(threads), int64_t{1}, [&](int64_t begin, int64_t end) {
    EXPECT_EQ(end, begin + 1);
    all_there.arrive_and_wait();
    f(static_cast<size_t>(begin));
  });
}

TEST(PinThread, RunsWhereItIsToldAndAnywhereAgain) {
  on_own_thread([] {
    const std::vector<int> before = cores_of_this_thread();
    const int cores = current_cores();
    for (const int core : {before.back(), before.front()}) {
      pin_thread({&core, 1});
      EXPECT_EQ(cores_of_this_thread(), std::vector{core});
      EXPECT_EQ(sched_getcpu(), core);
      EXPECT_EQ(current_cores(), 1);
    }
    pin_thread({});
    EXPECT_EQ(cores_of_this_thread(), before);
    EXPECT_EQ(current_cores(), cores);
  });
}

TEST(PinThread, TheTeamHasTheOtherCores) {
  const size_t threads = static_cast<size_t>(cpu_cores());
  on_own_thread([&] {
    const std::vector<int> before = cores_of_this_thread();
    if (before.size() < threads) return;  // HYBRIDNET_NUM_THREADS is larger than the number of cores
    const std::vector<int> cores(before.begin(), before.begin() + static_cast<int64_t>(threads));
    pin_thread(cores);
    std::vector<int> found(threads, -1);
    on_each_member(threads, [&](size_t number) {
      const std::vector<int> own = cores_of_this_thread();
      found[number] = own.size() == 1 ? own[0] : -1;
    });
    EXPECT_EQ(found, cores);
    pin_thread({});
    std::vector<size_t> allowed(threads);
    on_each_member(threads, [&](size_t number) { allowed[number] = cores_of_this_thread().size(); });
    EXPECT_EQ(allowed, std::vector<size_t>(threads, before.size()));
  });
}

TEST(PinThread, WrongCoresAreRefusedAndChangeNothing) {
  on_own_thread([] {
    const std::vector<int> before = cores_of_this_thread();
    const std::vector<std::vector<int>> wrong = {
        {-1}, {CPU_SETSIZE}, {1 << 30}, {before[0], before[0]}, std::vector<int>(2000, before[0])};
    for (const std::vector<int>& cores : wrong) EXPECT_THROW(pin_thread(cores), ValueError);
    EXPECT_EQ(cores_of_this_thread(), before);
    pin_thread({&before[0], 1});
    EXPECT_THROW(pin_thread(wrong[0]), ValueError);
    EXPECT_EQ(cores_of_this_thread(), std::vector{before[0]});
  });
}

}  // namespace
}  // namespace hybridnet
