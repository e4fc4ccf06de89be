#include "teams/team.h"

#include <gtest/gtest.h>
#include <link.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <latch>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "teams/float_errors.h"
#include "teams/helpers.h"
#include "teams/region.h"

extern "C" {
void HNTM_parallel_start(void (*body)(void*), void* data, unsigned threads);
void HNTM_parallel_end();
void HNTM_barrier();
bool HNTM_loop_static_start(long first, long end, long step, long chunk, long* begin_of_chunk, long* end_of_chunk);
bool HNTM_loop_static_next(long* begin, long* end);
int hnt_get_max_threads();
int hnt_get_num_threads();
int hnt_get_thread_num();
int hnt_in_parallel();
}

namespace hybridnet::teams {
namespace {

template <typename F>
void run_all(int threads, const F& f) {
  run(
      threads, [](void* body) { (*static_cast<const F*>(body))(); }, const_cast<F*>(&f));
}

template <typename F>
void run_through_openmp(unsigned threads, const F& f) {
  void (*const body)(void*) = [](void* f) { (*static_cast<const F*>(f))(); };
  HNTM_parallel_start(body, const_cast<F*>(&f), threads);
  f();
  HNTM_parallel_end();
}

int64_t threads_of_process() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::distance(begin(tasks), end(tasks));
}

TEST(Teams, EachMemberRunsOnceWithItsNumberAtTheSameTimeAsTheOthers) {
  for (const int threads : {1, 2, 5}) {
    std::vector<std::atomic<int>> calls(static_cast<size_t>(threads));
    std::latch all_there(threads);
    run_all(threads, [&] {
      EXPECT_EQ(threads_of_team(), threads);
      EXPECT_EQ(in_team(), threads > 1);
      ++calls[static_cast<size_t>(number_in_team())];
      all_there.arrive_and_wait();
    });
    for (const auto& count : calls) EXPECT_EQ(count.load(), 1);
    EXPECT_EQ(threads_of_team(), 1);
    EXPECT_EQ(number_in_team(), 0);
  }
}

TEST(Teams, ATeamInsideATeamIsTheMemberAlone) {
  std::atomic<int> inner{0};
  run_all(3, [&] {
    const auto thread = std::this_thread::get_id();
    run_all(3, [&] {
      EXPECT_EQ(std::this_thread::get_id(), thread);
      EXPECT_EQ(threads_of_team(), 1);
      ++inner;
    });
    EXPECT_EQ(threads_of_team(), 3);
  });
  EXPECT_EQ(inner.load(), 3);
}

TEST(Teams, ThreadsThatTakeTurnsShareTheirHelpers) {
  run_all(3, [] {});
  const int64_t before = threads_of_process();
  for (int i = 0; i < 20; ++i) std::thread([] { run_all(3, [] {}); }).join();
  EXPECT_EQ(threads_of_process(), before);
}

TEST(Teams, ManyThreadsOpenTeamsAtTheSameTime) {
  std::array<std::atomic<int64_t>, 4> sums{};
  std::vector<std::thread> openers;
  for (auto& sum : sums) {
    openers.emplace_back([&sum] {
      for (int i = 0; i < 3000; ++i) {
        run_all(3, [&] { sum += number_in_team() + 1; });
        std::atomic<int> left{10};
        auto take = [&] {
          while (left.fetch_sub(1) > 0) ++sum;
        };
        run_while_there_is_work(
            3, [](void* f) { (*static_cast<decltype(take)*>(f))(); }, &take);
      }
    });
  }
  for (auto& opener : openers) opener.join();
  for (const auto& sum : sums) EXPECT_EQ(sum.load(), 3000 * (1 + 2 + 3 + 10));
}

TEST(Teams, AnAssignmentIsTakenBackFromAHelperThatHasNotBegunAndFromNoOther) {
  Team mine, other;
  Helper helper;  // no thread serves it
  assign(&helper, &mine, 1);
  EXPECT_FALSE(retract(&helper, &other));
  EXPECT_TRUE(retract(&helper, &mine));
  EXPECT_FALSE(retract(&helper, &mine));
}

TEST(Teams, KeptHelpersServeTheirThreadAloneAndGoBackFree) {
  cpu_set_t all;
  CPU_ZERO(&all);
  ASSERT_EQ(sched_getaffinity(0, sizeof(all), &all), 0);
  std::thread([&] {
    keep_helpers(2);
    std::mutex mutex;
    std::set<std::thread::id> first, again;
    run_all(3, [&] {
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(sched_getcpu(), &one);
      if (number_in_team() > 0) {
        EXPECT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
      }
      const std::lock_guard lock(mutex);
      first.insert(std::this_thread::get_id());
    });
    std::thread([&] {  // other threads do not get these helpers
      run_all(3, [&] {
        const std::lock_guard lock(mutex);
        EXPECT_FALSE(first.contains(std::this_thread::get_id()));
      });
    })
        .join();
    run_all(5, [&] {  // and this thread gets no others
      const std::lock_guard lock(mutex);
      again.insert(std::this_thread::get_id());
    });
    EXPECT_EQ(first, again);
  }).join();
  run_all(8, [&] {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    EXPECT_EQ(sched_getaffinity(0, sizeof(cores), &cores), 0);
    EXPECT_TRUE(CPU_EQUAL(&cores, &all));
  });
}

TEST(Teams, TheChildOfAForkHasHelpersOfItsOwn) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer does not follow threads that start after a fork";
#endif
  run_all(3, [] {});
  const pid_t child = fork();
  if (child == 0) {
    std::atomic<int> sum{0};
    run_all(3, [&] { sum += number_in_team() + 1; });
    _exit(sum.load() == 6 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(OneDnnThreads, AreTeamsOfTheSizeThatTheCallSays) {
  std::latch all_there(3);
  std::atomic<int> numbers{0};
  run_through_openmp(3, [&] {
    EXPECT_EQ(hnt_get_num_threads(), 3);
    EXPECT_EQ(hnt_in_parallel(), 1);
    EXPECT_EQ(hnt_get_max_threads(), 1);
    numbers |= 1 << hnt_get_thread_num();
    all_there.arrive_and_wait();
  });
  EXPECT_EQ(numbers.load(), 7);
  EXPECT_EQ(hnt_in_parallel(), 0);
}

TEST(OneDnnThreads, HaveTheSizeThatTheThreadSetUnlessTheCallSays) {
  std::thread([] {
    set_most_threads(2);
    EXPECT_EQ(hnt_get_max_threads(), 2);
    run_through_openmp(0, [] { EXPECT_EQ(hnt_get_num_threads(), 2); });
    set_most_threads(0);
    EXPECT_EQ(hnt_get_max_threads(), most_threads());
  }).join();
}

TEST(OneDnnThreads, MembersThatHaveNotBegunAreRunByTheOpener) {
  std::thread([] {
    std::array<std::atomic<int>, 4> calls{};
    int run_by_opener = 0;
    const auto opener = std::this_thread::get_id();
    for (int round = 0; round < 200; ++round) {
      run_through_openmp(4, [&] {
        ++calls[static_cast<size_t>(hnt_get_thread_num())];
        if (std::this_thread::get_id() == opener && hnt_get_thread_num() > 0) ++run_by_opener;
      });
      for (const auto& count : calls) EXPECT_EQ(count.load(), round + 1);
      EXPECT_EQ(hnt_get_thread_num(), 0);
      if (round % 20 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));  // the helpers sleep
    }
    EXPECT_GT(run_by_opener, 0);
  }).join();
}

TEST(OneDnnThreads, NobodyPassesABarrierBeforeAllAreThere) {
  std::atomic<int> there{0};
  run_through_openmp(3, [&] {
    for (int round = 1; round <= 200; ++round) {
      ++there;
      HNTM_barrier();
      EXPECT_EQ(there.load(), 3 * round);
      HNTM_barrier();
    }
  });
}

TEST(OneDnnThreads, MeetAtABarrierAlsoWhereTheyBeginLate) {
  for (int round = 0; round < 20; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // the helpers sleep
    std::atomic<int> there{0};
    run_through_openmp(4, [&] {
      if (hnt_get_thread_num() == 0) return void(++there);  // the opener finishes at once
      while (there.load() == 0) std::this_thread::yield();
      ++there;
      while (there.load() < 4) std::this_thread::yield();  // the others wait for each other
    });
    EXPECT_EQ(there.load(), 4);
  }
}

TEST(OneDnnThreads, ShareTheIterationsOfALoopOnceEach) {
  for (const long step : {1L, 3L, -2L}) {
    for (const long chunk : {0L, 1L, 4L}) {
      for (const long count : {0L, 1L, 2L, 7L, 24L}) {
        const long first = 5, end = first + step * count;
        std::vector<std::atomic<int>> hits(static_cast<size_t>(count));
        run_through_openmp(3, [&] {
          long from = 0, to = 0;
          for (bool more = HNTM_loop_static_start(first, end, step, chunk, &from, &to); more;
               more = HNTM_loop_static_next(&from, &to)) {
            for (long i = from; step > 0 ? i < to : i > to; i += step) ++hits[static_cast<size_t>((i - first) / step)];
          }
        });
        for (const auto& hit : hits) EXPECT_EQ(hit.load(), 1) << step << " " << chunk << " " << count;
      }
    }
  }
}

TEST(OneDnnThreads, LeaveTheOpenMPOfTheApplicationAlone) {
  std::string loaded;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* names) {
        *static_cast<std::string*>(names) += std::string(info->dlpi_name) + "\n";
        return 0;
      },
      &loaded);
  EXPECT_NE(loaded.find("libdnnl"), std::string::npos);
  EXPECT_EQ(loaded.find("libgomp"), std::string::npos) << loaded;
}

// oneDNN loses NaN in its threads; the thread that runs it checks the float errors afterwards.
TEST(FloatErrors, OfHelpersAreThoseOfTheOpener) {
  forget_float_errors();
  const auto divide = [](void* data) {
    if (number_in_team() != 2) return;
    volatile float zero = 0;
    *static_cast<volatile float*>(data) = zero / zero;
  };
  float result = 1;
  run(1, divide, &result);
  EXPECT_EQ(float_errors(), 0u);
  run(3, divide, &result);
  EXPECT_NE(result, result);
  EXPECT_NE(float_errors(), 0u);
  EXPECT_NE(forget_float_errors(), 0u);
  run(
      3, [](void*) {}, nullptr);
  EXPECT_EQ(float_errors(), 0u) << "helpers forget what they have passed on";
}

}  // namespace
}  // namespace hybridnet::teams
