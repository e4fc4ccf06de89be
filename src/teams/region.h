// A parallel region of a team, from its opening to the moment when all members are done.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "teams/helpers.h"
#include "teams/team.h"

namespace hybridnet::teams {

struct Team {
  Body body = nullptr;
  void* data = nullptr;
  int threads = 1;
  int opener_core = -1;
  // The number of helpers that are not done, and a bit that is set while the opener sleeps until none is left.
  static constexpr uint32_t kOpenerSleeps = uint32_t{1} << 31;
  alignas(64) std::atomic<uint32_t> unfinished{0};
  std::atomic<int> unstarted{0};
  std::atomic<unsigned> float_errors{0};    // errors of the helpers, see float_errors.h
  alignas(64) std::atomic<int> arrived{0};  // number of members at the barrier
  std::atomic<uint32_t> barriers{0};        // number of barriers that all have passed

  void done(uint32_t helpers);
};

// The current team of a thread, and its number in the team.
struct Membership {
  Team* team = nullptr;
  int number = 0;
  int most_threads = 0;  // set_most_threads(); 0: the default
};
Membership& membership();

void barrier(Team& team);
void forget_kept_helpers();  // called in the child of a fork, where the helpers of the calling thread are gone

class Region {
 public:
  static constexpr int kMaxThreads = 1024;

  // The calling thread becomes number 0 of a team of `threads`, and the others begin.
  Region(int threads, Body body, void* data);
  ~Region();  // waits for the others
  Region(const Region&) = delete;

  // Takes back the assignments of members that have not begun: they never will.
  void retract_unstarted();
  // The same, and the opener runs their parts.
  void run_unstarted();

 private:
  bool retract(int number);  // if it has not begun
  void take_helpers(int count);
  void wait_for_helpers();
  Team team_;
  const Membership before_;
  int64_t begin_ = 0;
  std::array<Helper*, kMaxThreads> helpers_;  // threads - 1 of them
};

}  // namespace hybridnet::teams
